# Writes the bytes of the file FROM, and a zero, to the file TO as elements of an array in C.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "${bytes}0\n")

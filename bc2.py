import bngrad
bngrad.compile(open('/tmp/hr/deepa.mlirbc','rb').read())

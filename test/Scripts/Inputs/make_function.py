"""Prints C++ with functions of the given number of lines after the opening brace."""

import sys

# Braces that open or close no block.
NO_BLOCKS = ["// }", "/* }", "} */", 'f("}\\"}");', "f('}', '\\'', 1'000);", 'f(R"x(}")}', ')x");', "#define BRACE \\", "  }"]


def body() -> str:
    lines = [*NO_BLOCKS, "if (true) {", "f([] { return 1; });", "}"]
    lines += ["f(1);"] * (int(sys.argv[1]) - 1 - len(lines))
    return "{\n" + "\n".join(lines) + "\n}\n"


print("#include <f.h>\n\nnamespace a::b {\nnamespace {")
print("static Result<int> *free(int first) " + body())
print("const int kTable[] = {\n" + "1,\n" * 100 + "};\n")
print("class alignas(16) Class final : Base {\npublic:")
print("Class(int i) : Base{i}, member(i) " + body())
print("template <typename T> bool method(T value) const override " + body())
print("Member member;\n};\n} // namespace\n")
print("template <class T>\nauto Class::initialized() noexcept(false) -> T " + body())
print('} // namespace a::b\n\nextern "C" {\nvoid exported(void) ' + body() + "}")

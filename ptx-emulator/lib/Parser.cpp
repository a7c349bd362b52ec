//===- Parser.cpp - PTX text to Module --------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accepts any instruction. The decoder checks names and operands when a kernel
// is launched.
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include "Lexer.h"

#include <cstdlib>

namespace ptx {

std::string Instruction::fullName() const {
  std::string result;
  for (const std::string &part : name)
    result += (result.empty() ? "" : ".") + part;
  return result;
}

static std::vector<std::string> splitName(std::string_view text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t dot = text.find('.', begin);
    if (dot == std::string_view::npos)
      dot = text.size();
    parts.emplace_back(text.substr(begin, dot - begin));
    begin = dot + 1;
  }
  return parts;
}

namespace {

class Parser {
public:
  Parser(std::string_view text, Module &module)
      : tokens(tokenize(text)), module(module) {}

  bool parse();
  std::string error;

private:
  const Token &peek(size_t ahead = 0) const {
    size_t index = position + ahead;
    return index < tokens.size() ? tokens[index] : tokens.back();
  }
  const Token &take() {
    const Token &token = peek();
    if (position + 1 < tokens.size())
      ++position;
    return token;
  }
  bool takeIf(char punctuation) {
    if (!peek().is(punctuation))
      return false;
    take();
    return true;
  }
  bool takeIf(std::string_view word) {
    if (!peek().is(word))
      return false;
    take();
    return true;
  }
  bool fail(std::string_view expected) {
    if (error.empty())
      error = "PTX line " + std::to_string(peek().line) + ": expected " +
              std::string(expected) + ", got " +
              (peek().kind == Token::End ? "the end" : quote(peek().text));
    return false;
  }
  bool expect(char punctuation) {
    return takeIf(punctuation) || fail(std::string(1, punctuation));
  }
  void skipLine() {
    unsigned line = peek().line;
    while (peek().kind != Token::End && peek().line == line)
      take();
  }
  void skipPast(char punctuation) {
    while (peek().kind != Token::End && !takeIf(punctuation))
      take();
  }
  void skipBraces();
  bool skipDebugDirective();

  bool isVariableStart() const;
  bool parseVariables(std::vector<Variable> &variables, bool isExtern);
  bool parseDeclarator(Variable &variable);
  bool parseVariable(Variable &variable);
  bool parseInitializers(Type type, std::vector<Initializer> &values);
  bool parseInitializer(Type type, Initializer &value);
  bool parseParams(std::vector<Variable> &params);
  bool parseDims(uint64_t *dims);
  bool parseFunction(bool isEntry);
  bool parseBody(std::vector<Statement> &body);
  bool parseInstruction(Statement &statement);
  bool parseOperand(SyntaxOperand &operand);
  bool parseOperands(std::vector<SyntaxOperand> &operands, char close);
  bool parseLiteral(SyntaxOperand &operand);
  bool parseOffset(int64_t &offset);

  std::vector<Token> tokens;
  size_t position = 0;
  Module &module;
};

} // namespace

void Parser::skipBraces() {
  unsigned depth = 0;
  do {
    if (peek().is('{'))
      ++depth;
    else if (peek().is('}'))
      --depth;
    take();
  } while (depth != 0 && peek().kind != Token::End);
}

bool Parser::skipDebugDirective() {
  if (peek().is(".loc") || peek().is(".file")) {
    skipLine();
    return true;
  }
  if (peek().is(".pragma")) {
    skipPast(';');
    return true;
  }
  if (peek().is(".section")) {
    while (!peek().is('{') && peek().kind != Token::End)
      take();
    skipBraces();
    return true;
  }
  return false;
}

bool Parser::isVariableStart() const {
  for (std::string_view word :
       {".reg", ".shared", ".local", ".param", ".global", ".const"})
    if (peek().is(word))
      return true;
  return false;
}

bool Parser::parseLiteral(SyntaxOperand &operand) {
  bool negative = takeIf('-');
  if (!negative)
    takeIf('+');
  const Token &token = peek();
  if (token.kind == Token::Integer) {
    operand.kind = SyntaxOperand::Integer;
    operand.integer = negative ? -int64_t(token.integer) : token.integer;
  } else if (token.kind == Token::Float) {
    operand.kind = SyntaxOperand::Float;
    operand.real = negative ? -token.real : token.real;
  } else {
    return fail("a number");
  }
  take();
  return true;
}

bool Parser::parseOffset(int64_t &offset) {
  while (peek().is('+') || peek().is('-')) {
    bool negative = take().is('-');
    negative ^= takeIf('-');
    if (peek().kind != Token::Integer)
      return fail("an integer");
    int64_t value = take().integer;
    offset += negative ? -value : value;
  }
  return true;
}

bool Parser::parseOperands(std::vector<SyntaxOperand> &operands, char close) {
  while (!takeIf(close)) {
    if (!operands.empty() && !expect(','))
      return false;
    if (!parseOperand(operands.emplace_back()))
      return false;
  }
  return true;
}

bool Parser::parseOperand(SyntaxOperand &operand) {
  if (takeIf('{')) {
    operand.kind = SyntaxOperand::Vector;
    return parseOperands(operand.elements, '}');
  }
  if (takeIf('(')) {
    operand.kind = SyntaxOperand::List;
    return parseOperands(operand.elements, ')');
  }
  if (takeIf('[')) {
    operand.kind = SyntaxOperand::Address;
    if (peek().kind == Token::Word)
      operand.name = take().text;
    else if (peek().kind == Token::Integer)
      operand.integer = take().integer;
    else
      return fail("an address");
    if (!parseOffset(operand.integer))
      return false;
    if (takeIf(','))
      return parseOperands(operand.elements, ']');
    return expect(']');
  }
  operand.negated = takeIf('!');
  if (peek().kind != Token::Word)
    return parseLiteral(operand);
  operand.name = take().text;
  operand.kind =
      operand.name == "_" ? SyntaxOperand::Sink : SyntaxOperand::Name;
  if (takeIf('|')) {
    if (peek().kind != Token::Word)
      return fail("a name");
    operand.second = take().text;
  }
  return parseOffset(operand.integer);
}

bool Parser::parseInstruction(Statement &statement) {
  statement.kind = Statement::Code;
  Instruction &code = statement.code;
  if (takeIf('@')) {
    code.guardNegated = takeIf('!');
    code.guard = take().text;
  }
  statement.line = peek().line;
  if (peek().kind != Token::Word)
    return fail("an instruction");
  code.name = splitName(take().text);
  if (takeIf(';'))
    return true;
  return parseOperands(code.operands, ';');
}

bool Parser::parseInitializer(Type type, Initializer &value) {
  if (peek().kind != Token::Word) {
    SyntaxOperand literal;
    if (!parseLiteral(literal))
      return false;
    bool isReal = literal.kind == SyntaxOperand::Float;
    if (type == Type::F32)
      value.bits = toBits(float(isReal ? literal.real : literal.integer));
    else
      value.bits = isReal ? toBits(literal.real) : literal.integer;
    return true;
  }
  value.generic = takeIf("generic");
  if (value.generic && !expect('('))
    return false;
  value.symbol = take().text;
  int64_t offset = 0;
  if (value.generic && !expect(')'))
    return false;
  if (!parseOffset(offset))
    return false;
  value.bits = offset;
  return true;
}

bool Parser::parseInitializers(Type type, std::vector<Initializer> &values) {
  if (!takeIf('{'))
    return parseInitializer(type, values.emplace_back());
  while (!takeIf('}')) {
    if (takeIf(','))
      continue;
    if (!(peek().is('{') ? parseInitializers(type, values)
                         : parseInitializer(type, values.emplace_back())))
      return false;
  }
  return true;
}

/// `name`, `name<5>` or `name[4][5]`.
bool Parser::parseDeclarator(Variable &variable) {
  if (peek().kind != Token::Word)
    return fail("a name");
  variable.name = take().text;
  if (takeIf('<')) {
    if (peek().kind != Token::Integer || uint64_t(peek().integer) < 1 ||
        uint64_t(peek().integer) > kMaxRegisters)
      return fail("a number of names from 1 to " +
                  std::to_string(kMaxRegisters));
    variable.range = take().integer;
    if (!expect('>'))
      return false;
  }
  while (takeIf('[')) {
    variable.isArray = true;
    uint64_t extent = 0; // if absent
    if (peek().kind == Token::Integer)
      extent = peek().integer;
    if (extent != 0 && variable.elements > kMaxElements / extent)
      return fail("an array of at most " + std::to_string(kMaxElements) +
                  " elements");
    if (peek().kind == Token::Integer)
      take();
    variable.elements *= extent;
    if (!expect(']'))
      return false;
  }
  return true;
}

/// `.space .align 16 .v4 .type name[4][5]`, without initialisers.
bool Parser::parseVariable(Variable &variable) {
  variable.line = peek().line;
  std::string_view space = take().text;
  variable.space = space == ".reg"      ? Space::Register
                   : space == ".shared" ? Space::Shared
                   : space == ".local"  ? Space::Local
                   : space == ".param"  ? Space::Param
                   : space == ".const"  ? Space::Constant
                                        : Space::Global;
  bool isPointee = false;
  while (peek().kind == Token::Word && peek().text[0] == '.') {
    std::string_view word = take().text;
    if (word == ".align") {
      uint64_t align = 0;
      if (peek().kind == Token::Integer)
        align = peek().integer;
      if (align == 0 || (align & (align - 1)) != 0 || align > kMaxAlign)
        return fail("a power of two up to " + std::to_string(kMaxAlign));
      take();
      if (!isPointee)
        variable.align = align;
    } else if (word == ".v2" || word == ".v4" || word == ".v8") {
      variable.vector = word[2] - '0';
    } else if (word == ".ptr") {
      // The rest describes the pointee of a pointer parameter.
      isPointee = true;
    } else if (Type type = parseType(word.substr(1)); type != Type::None) {
      variable.type = type;
    }
  }
  if (!parseDeclarator(variable))
    return false;
  if (variable.type == Type::None)
    return fail("a type for " + quote(variable.name) + " before this");
  return true;
}

bool Parser::parseVariables(std::vector<Variable> &variables, bool isExtern) {
  Variable variable;
  if (!parseVariable(variable))
    return false;
  variable.isExtern = isExtern;
  for (;;) {
    if (takeIf('=')) {
      if (!parseInitializers(variable.type, variable.initializers))
        return false;
      // `= {1, 2}` without a size.
      if (variable.isArray && variable.elements == 0)
        variable.elements = variable.initializers.size();
    }
    variables.push_back(variable);
    if (!takeIf(','))
      return expect(';');
    variable.initializers.clear();
    variable.range = 0;
    variable.elements = 1;
    variable.isArray = false;
    if (!parseDeclarator(variable))
      return false;
  }
}

bool Parser::parseParams(std::vector<Variable> &params) {
  if (!expect('('))
    return false;
  while (!takeIf(')')) {
    if (!params.empty() && !expect(','))
      return false;
    if (!parseVariable(params.emplace_back()))
      return false;
  }
  return true;
}

bool Parser::parseDims(uint64_t *dims) {
  dims[0] = dims[1] = dims[2] = 1;
  for (unsigned i = 0; i < 3; ++i) {
    if (peek().kind != Token::Integer)
      return fail("an integer");
    dims[i] = take().integer;
    if (!takeIf(','))
      return true;
  }
  return true;
}

bool Parser::parseBody(std::vector<Statement> &body) {
  unsigned depth = 1;
  while (depth != 0) {
    if (skipDebugDirective())
      continue;
    Statement statement;
    statement.line = peek().line;
    if (takeIf('{')) {
      statement.kind = Statement::ScopeBegin;
      ++depth;
    } else if (takeIf('}')) {
      if (--depth == 0)
        return true;
      statement.kind = Statement::ScopeEnd;
    } else if (takeIf(';')) {
      continue;
    } else if (isVariableStart()) {
      std::vector<Variable> variables;
      if (!parseVariables(variables, false))
        return false;
      for (Variable &variable : variables) {
        statement.kind = Statement::Declaration;
        statement.variable = variable;
        body.push_back(statement);
      }
      continue;
    } else if (peek().kind == Token::Word && peek(1).is(':')) {
      statement.label = take().text;
      take();
      if (takeIf(".branchtargets")) {
        statement.kind = Statement::BranchTargets;
        while (!takeIf(';')) {
          if (peek().kind == Token::End)
            return fail(";");
          const Token &token = take();
          if (token.kind == Token::Word)
            statement.targets.emplace_back(token.text);
        }
      } else if (peek().is(".callprototype") || peek().is(".calltargets")) {
        skipPast(';');
        continue;
      } else {
        statement.kind = Statement::Label;
      }
    } else if (!parseInstruction(statement)) {
      return false;
    }
    body.push_back(std::move(statement));
  }
  return true;
}

bool Parser::parseFunction(bool isEntry) {
  Function function;
  function.isEntry = isEntry;
  if (!isEntry && peek().is('(') && !parseParams(function.results))
    return false;
  function.line = peek().line;
  if (peek().kind != Token::Word)
    return fail("the name of a function");
  function.name = take().text;
  if (peek().is('(') && !parseParams(function.params))
    return false;
  while (peek().kind == Token::Word) {
    if (takeIf(".maxntid")) {
      if (!parseDims(function.maxThreadDims))
        return false;
      function.maxThreads = function.maxThreadDims[0] *
                            function.maxThreadDims[1] *
                            function.maxThreadDims[2];
    } else if (takeIf(".reqntid")) {
      if (!parseDims(function.requiredThreads))
        return false;
    } else if (takeIf(".reqnctapercluster")) {
      if (!parseDims(function.requiredCluster))
        return false;
    } else if (takeIf(".explicitcluster")) {
      function.explicitCluster = true;
    } else if (takeIf(".maxclusterrank")) {
      function.maxClusterRank = take().integer;
    } else if (takeIf(".minnctapersm") || takeIf(".maxnreg") ||
               takeIf(".maxnctapersm")) {
      take();
    } else if (takeIf(".noreturn")) {
    } else if (takeIf(".pragma")) {
      skipPast(';');
    } else {
      return fail("a directive of a function or its body");
    }
  }
  if (takeIf('{')) {
    function.hasBody = true;
    if (!parseBody(function.body))
      return false;
  } else if (!expect(';')) {
    return false;
  }
  Function &entry = module.functions[function.name];
  if (function.hasBody || entry.name.empty())
    entry = std::move(function);
  return true;
}

bool Parser::parse() {
  while (peek().kind != Token::End) {
    if (skipDebugDirective())
      continue;
    if (takeIf(".version")) {
      module.version = std::strtod(std::string(take().text).c_str(), nullptr);
      continue;
    }
    if (takeIf(".address_size")) {
      take();
      continue;
    }
    if (takeIf(".target")) {
      module.target = take().text;
      while (takeIf(','))
        take();
      continue;
    }
    bool isExtern = false;
    while (peek().is(".visible") || peek().is(".extern") ||
           peek().is(".weak") || peek().is(".common"))
      isExtern |= take().is(".extern");
    if (takeIf(".entry")) {
      if (!parseFunction(true))
        return false;
    } else if (takeIf(".func")) {
      if (!parseFunction(false))
        return false;
    } else if (isVariableStart()) {
      if (!parseVariables(module.variables, isExtern))
        return false;
    } else if (peek().kind == Token::Word &&
               (peek().is(".alias") || peek().is(".pragma"))) {
      skipPast(';');
    } else {
      return fail("a directive");
    }
  }
  return true;
}

bool parseModule(std::string_view text, Module &module, std::string &error) {
  Parser parser(text, module);
  if (parser.parse())
    return true;
  error = parser.error;
  return false;
}

} // namespace ptx

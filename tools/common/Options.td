//===- Options.td - what the options of tools share ------ -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tools have their own option tables, as llvm::cl options are global and
// libLLVM already defines `threads`.
//
//===----------------------------------------------------------------------===//

include "llvm/Option/OptParser.td"

/// --name VALUE and --name=VALUE.
multiclass Eq<string name, string metavar, string help> {
  def NAME : Separate<["--"], name>;
  def NAME#_eq : Joined<["--"], name#"=">, Alias<!cast<Separate>(NAME)>,
                 MetaVarName<metavar>, HelpText<help>;
}

def help : Flag<["--"], "help">, HelpText<"Print this text">;
def : Flag<["-"], "h">, Alias<help>;
def version : Flag<["--"], "version">,
              HelpText<"Print the versions of BNGrad and LLVM">;

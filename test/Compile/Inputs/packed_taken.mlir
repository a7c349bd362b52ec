func.func @gradient(%a: memref<?xf32>) {
  return
}
llvm.func @gradient_packed() {
  llvm.return
}

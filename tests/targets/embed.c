// SPDX-License-Identifier: Apache-2.0
//
// A program that is not called python and has one inside. `embed` runs Python code, `embed idle`
// runs none at the moment, as a server between two requests.
#include <Python.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  Py_Initialize();
  if (argc > 1 && strcmp(argv[1], "idle") == 0) {
    PyEval_SaveThread();
    puts("ready");
    fflush(stdout);
    while (1) pause();
  }
  return PyRun_SimpleString(
      "import time\n"
      "print('ready', flush=True)\n"
      "time.sleep(600)\n");
}

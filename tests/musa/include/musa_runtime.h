/* Everything that kernels need of it is there without an include; see ../stub.h. */
#pragma once

/* Types of 8 bits as the toolkit declares them, as far as sources use them; see ../stub.h. Names of the enumerations
 * themselves are not known and are not for sources. */
#pragma once
#include "musa_bf16.h"
#include "musa_fp16.h"

#if __MUSA_ARCH__ < 310
#error "this architecture has no 8-bit floats"
#endif

enum _saturation { __MT_NOSAT, __MT_SATFINITE };
enum _interpretation { __MT_E4M3, __MT_E5M2 };
struct __mt_fp8_e4m3 { unsigned char __x; };
struct __mt_fp8_e5m2 { unsigned char __x; };
struct __attribute__((aligned(2))) __mt_fp8x2_e4m3 { unsigned short __x; };
struct __attribute__((aligned(2))) __mt_fp8x2_e5m2 { unsigned short __x; };
struct __attribute__((aligned(4))) __mt_fp8x4_e4m3 { unsigned int __x; };
struct __attribute__((aligned(4))) __mt_fp8x4_e5m2 { unsigned int __x; };

_over unsigned char __musa_cvt_float_to_fp8(float, _saturation, _interpretation);
_over unsigned short __musa_cvt_float2_to_fp8x2(float2, _saturation, _interpretation);
_over __half_raw __musa_cvt_fp8_to_halfraw(unsigned char, _interpretation);
_over unsigned char __musa_cvt_bfloat16raw_to_fp8(__mt_bfloat16_raw, _saturation, _interpretation);

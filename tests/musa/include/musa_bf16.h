/* `bfloat16` as the toolkit declares it, as far as sources use it; see ../stub.h. */
#pragma once

struct __mt_bfloat16_raw { unsigned short data; };
struct __attribute__((aligned(2))) __mt_bfloat16 {
    __mt_bfloat16() = default;
    __device__ __mt_bfloat16(const __mt_bfloat16_raw &);
    __device__ operator __mt_bfloat16_raw() const;

  private:
    unsigned short bits;
};
struct __attribute__((aligned(4))) __mt_bfloat162 { __mt_bfloat16 x, y; };
struct __attribute__((aligned(8))) __mt_bfloat164 { __mt_bfloat16 x, y, z, w; };

_over __mt_bfloat16 __float2bfloat16_rn(float);
_over float __bfloat162float(__mt_bfloat16);
_over float2 __bfloat1622float2(__mt_bfloat162);
_over __mt_bfloat162 __float22bfloat162_rn(float2);
#if __MUSA_ARCH__ >= 310
_over __mt_bfloat164 __float42bfloat164_rn(float4);
_over float4 __bfloat1642float4(__mt_bfloat164);
_over __mt_bfloat16 atomicAdd(__mt_bfloat16 *, __mt_bfloat16);
#endif

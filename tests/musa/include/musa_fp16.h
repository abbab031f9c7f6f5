/* `half` as the toolkit declares it, as far as sources use it; see ../stub.h. No arithmetic: much of it is missing on
 * older devices, so sources compute in float. */
#pragma once

struct __half_raw { unsigned short x; };
struct __attribute__((aligned(2))) __half {
    __half() = default;
    __device__ __half(const __half_raw &);
    __device__ operator __half_raw() const;

  private:
    unsigned short bits;
};
typedef __half half;
struct __attribute__((aligned(4))) __half2 { __half x, y; };
typedef __half2 half2;
struct __attribute__((aligned(8))) __half4 { __half x, y, z, w; };

_over __half __float2half(float);
_over float __half2float(__half);
_over float2 __half22float2(__half2);
_over __half2 __float22half2_rn(float2);
#if __MUSA_ARCH__ >= 310
_over __half4 __float42half4_rn(float4);
_over __half atomicAdd(__half *, __half);
#endif

// float32 to e4m3 by the instruction that Ada and later have: the lower lane of a pair.
__device__ unsigned cast(float x)
{
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    return pair & 0xff;
}

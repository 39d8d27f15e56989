/* Found before libstdc++'s file of this name, which <cmath> reads for Bessel functions and the like: a tenth of what
   g++ takes for a kernel, and none of them exists in device code. */
#include <bits/stl_algobase.h>
#include <limits>
#include <type_traits>

// Runs the kernels of this folder on a CPU, one block after the other, so that their values can be checked
// where there is no GPU. Only what those kernels use is here.
//
// Kernels without communication between threads are called in a loop. Otherwise every thread of a block is a
// coroutine (ucontext): at a barrier or a shuffle it gives way to the next one, so that all threads reach the
// same point before any goes on.
// C headers: they take a fraction of the C++ ones' time to compile, which is most of a test's.
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

struct dim3 {
  unsigned x, y, z;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline double2 make_double2(double x, double y) { return double2{x, y}; }

inline double max(double a, double b) { return a > b ? a : b; }

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)

static dim3 threadIdx, blockIdx, blockDim, gridDim;

template <class T>
void __stcs(T* address, T value) {
  *address = value;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}

namespace shim {

struct Thread {
  ucontext_t context;
  char* stack;  // kept for the next block
  dim3 index;
  int shuffles;
  bool done;
};

constexpr int max_threads = 1024;
constexpr size_t stack_bytes = 1 << 18;
static Thread threads[max_threads];
static ucontext_t scheduler;
static int current = 0;
// Two slots a thread: one shuffle's values are still being read while the next one's are written.
static double posted[2][max_threads];

inline void give_way() {
  swapcontext(&threads[current].context, &scheduler);
  threadIdx = threads[current].index;
}

template <class T>
T shuffle(T value, int lane) {
  static_assert(sizeof(T) <= sizeof(double), "a value fits a slot");
  const int me = current, slot = threads[me].shuffles++ & 1;
  memcpy(&posted[slot][me], &value, sizeof(T));
  give_way();
  T got;
  memcpy(&got, &posted[slot][(me & ~31) | (lane & 31)], sizeof(T));
  return got;
}

static void (*body)();

inline void enter() {
  body();
  threads[current].done = true;
  swapcontext(&threads[current].context, &scheduler);
}

inline void run_block() {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  for (unsigned t = 0; t < count; ++t) {
    Thread& thread = threads[t];
    if (thread.stack == nullptr) thread.stack = (char*)malloc(stack_bytes);
    thread.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    thread.done = false;
    thread.shuffles = 0;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack;
    thread.context.uc_stack.ss_size = stack_bytes;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, enter, 0);
  }
  for (bool left = true; left;) {
    left = false;
    for (unsigned t = 0; t < count; ++t) {
      if (threads[t].done) continue;
      current = t;
      threadIdx = threads[t].index;
      swapcontext(&scheduler, &threads[t].context);
      left |= !threads[t].done;
    }
  }
}

}  // namespace shim

inline void __syncthreads() { shim::give_way(); }
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return shim::shuffle(value, lane);
}

// Calls a kernel with its arguments from an array of pointers, taken one by one.
template <class F, class... Taken>
void host_call(F kernel, void (*)(), void**, Taken... taken) {
  kernel(taken...);
}
template <class F, class A, class... Left, class... Taken>
void host_call(F kernel, void (*)(A, Left...), void** args, Taken... taken) {
  host_call(kernel, (void (*)(Left...))nullptr, args + 1, taken..., (A)*args);
}

static void** host_args;

inline void host_run(void (*body)(), bool communicates, const int* grid, const int* block, void** args) {
  host_args = args;
  shim::body = body;
  gridDim = {(unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2]};
  blockDim = {(unsigned)block[0], (unsigned)block[1], (unsigned)block[2]};
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
        if (communicates) {
          shim::run_block();
          continue;
        }
        for (threadIdx.z = 0; threadIdx.z < blockDim.z; ++threadIdx.z)
          for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) body();
      }
}

// HOST_RUN(kernel, communicates): the C function run_<kernel> launches it.
#define HOST_RUN(kernel, communicates)                                          \
  static void body_##kernel() { host_call(kernel, kernel, host_args); }         \
  extern "C" void run_##kernel(const int* grid, const int* block, void** args) { \
    host_run(body_##kernel, communicates, grid, block, args);                   \
  }

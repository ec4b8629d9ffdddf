// Runs the kernels of this folder on a CPU, one block after the other, so that their values can be checked
// where there is no GPU. Only what those kernels use is here.
//
// Kernels without communication between threads are called in a loop. Otherwise every thread of a block is a
// coroutine (ucontext): at a barrier or a shuffle it gives way to the next one, so that all threads reach the
// same point before any goes on.
#include <ucontext.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

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
  std::vector<char> stack;
  dim3 index;
  int shuffles = 0;
  bool done = false;
};

static std::vector<Thread> threads;
static ucontext_t scheduler;
static int current = 0;
// Two slots a thread: one shuffle's values are still being read while the next one's are written.
static std::vector<double> posted[2];

inline void give_way() {
  swapcontext(&threads[current].context, &scheduler);
  threadIdx = threads[current].index;
}

template <class T>
T shuffle(T value, int lane) {
  static_assert(sizeof(T) <= sizeof(double), "a value fits a slot");
  const int me = current, slot = threads[me].shuffles++ & 1;
  std::memcpy(&posted[slot][me], &value, sizeof(T));
  give_way();
  T got;
  std::memcpy(&got, &posted[slot][(me & ~31) | (lane & 31)], sizeof(T));
  return got;
}

template <class... A, std::size_t... I>
void invoke(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
  kernel((A)args[I]...);
}

static void (*body)();

inline void enter() {
  body();
  threads[current].done = true;
  swapcontext(&threads[current].context, &scheduler);
}

inline void run_block() {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  threads.resize(count);
  posted[0].assign(count, 0.0);
  posted[1].assign(count, 0.0);
  for (unsigned t = 0; t < count; ++t) {
    Thread& thread = threads[t];
    thread.stack.resize(1 << 18);
    thread.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    thread.done = false;
    thread.shuffles = 0;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
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

// HOST_RUN(kernel): the C function a test calls.
#define HOST_RUN(kernel, communicates)                                                      \
  template <class... A>                                                                     \
  void host_call(void (*f)(A...), void** args) {                                            \
    shim::invoke(f, args, std::index_sequence_for<A...>{});                                 \
  }                                                                                         \
  static void** host_args;                                                                  \
  static void host_body() { host_call(kernel, host_args); }                                 \
  extern "C" void host_run(const int* grid, const int* block, void** args) {                \
    host_args = args;                                                                       \
    shim::body = host_body;                                                                 \
    gridDim = {(unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2]};                    \
    blockDim = {(unsigned)block[0], (unsigned)block[1], (unsigned)block[2]};                \
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)                              \
      for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)                            \
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {                        \
          if (communicates) {                                                               \
            shim::run_block();                                                              \
            continue;                                                                       \
          }                                                                                 \
          for (threadIdx.z = 0; threadIdx.z < blockDim.z; ++threadIdx.z)                    \
            for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)                  \
              for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) host_body();   \
        }                                                                                   \
  }

/* A wall clock that is wrong by as much as a file says: eight bytes, nanoseconds, in the order of this machine. It is put
 * before the C library (LD_PRELOAD). It asks the kernel directly, so it needs nothing that the program's own start needs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead;

__attribute__((constructor)) static void find(void) {
	const char *path = getenv("INTERLOCK_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED : mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p != MAP_FAILED)
		ahead = p;
}

int clock_gettime(clockid_t id, struct timespec *t) {
	int rc = syscall(SYS_clock_gettime, id, t);
	if (rc == 0 && ahead && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		int64_t ns = t->tv_sec * 1000000000LL + t->tv_nsec + *ahead;
		t->tv_sec = ns / 1000000000LL;
		t->tv_nsec = ns % 1000000000LL;
	}
	return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	struct timespec now;
	int rc = clock_gettime(CLOCK_REALTIME, &now);
	(void)zone;
	if (rc == 0 && t) {
		t->tv_sec = now.tv_sec;
		t->tv_usec = now.tv_nsec / 1000;
	}
	return rc;
}

time_t time(time_t *t) {
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return -1;
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}

/* Reads 64 bytes of a cached file N times; prints nanoseconds of processor time per read. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int n_words, char **words) {
    if (n_words != 3) return 2;
    int fd = open(words[1], O_RDONLY);
    long n = atol(words[2]);
    char buffer[64];
    struct timespec start, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    for (long i = 0; i < n; i++) {
        if (pread(fd, buffer, sizeof buffer, i * 7919 % 90000) != sizeof buffer) return 1;
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    printf("%.1f\n", ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / n);
    return 0;
}

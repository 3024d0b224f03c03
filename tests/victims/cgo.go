// SPDX-License-Identifier: MIT OR Apache-2.0

// Goroutines call C's malloc and free in a loop.  Prints "ok" and ends at SIGTERM.
// usage: cgo GOROUTINES
package main

/*
#include <stdlib.h>
#include <string.h>

static int churn(unsigned n, int value)
{
	unsigned char *p = malloc(n);

	if (!p)
		return 0;
	memset(p, value, n);
	value = p[0] == (unsigned char)value && p[n - 1] == (unsigned char)value;
	free(p);
	return value;
}
*/
import "C"

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

func main() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		os.Exit(2)
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	var stop int32
	var all sync.WaitGroup
	for i := 0; i < n; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			garbage := 0
			for k := 1; atomic.LoadInt32(&stop) == 0; k++ {
				if C.churn(C.uint(1+k%500), C.int(k%256)) == 0 {
					fmt.Println("wrong byte")
					os.Exit(1)
				}
				garbage += len(make([]byte, k%3000)) // the collector sends its signals
			}
		}(i)
	}
	<-term
	atomic.StoreInt32(&stop, 1)
	all.Wait()
	fmt.Println("ok")
}

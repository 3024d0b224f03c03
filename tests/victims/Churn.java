// SPDX-License-Identifier: MIT OR Apache-2.0

import java.util.concurrent.CountDownLatch;
import java.util.zip.Deflater;

/**
 * Threads allocate on Java's heap and, through zlib, by malloc.  Prints "ready" when all of them have, so that
 * no library is loaded later; "ok" at SIGTERM.
 */
public class Churn {
    static final CountDownLatch starting = new CountDownLatch(8);
    static volatile boolean stop;

    static void run() {
        byte[] in = new byte[5000], out = new byte[6000];
        while (!stop) {
            Deflater d = new Deflater();
            d.setInput(in);
            d.finish();
            if (d.deflate(out) <= 0)
                Runtime.getRuntime().halt(1);
            d.end();
            starting.countDown();
        }
    }

    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[8];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(Churn::run);
            threads[i].start();
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stop = true;
            System.out.println("ok");
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }));
        starting.await();
        System.out.println("ready");
    }
}

namespace store { int work(int n); }
int other(int n) { return store::work(n) + 1; }

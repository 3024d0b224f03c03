#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace store {
struct entry {
	std::string name;
	std::vector<int> values;
	explicit entry(int n) : name("entry" + std::to_string(n)), values(n, n) {}
	~entry();
	template <class F> int each(F f) const {
		int sum = 0;
		for (int v : values)
			sum += f(v);
		return sum;
	}
};
entry::~entry() { if (values.size() > 1000000) std::puts("large"); }
namespace {
template <class T> T *make(int n) { return new T(n); }
int hidden(int n) { auto e = std::unique_ptr<entry>(make<entry>(n)); return e->each([n](int v) { return v * n + (int)std::string(v % 40, 'x').size(); }); }
}
class cache {
	std::unordered_map<int, std::shared_ptr<entry>> all;
	std::map<std::string, int> index;
public:
	void put(int n) { all[n] = std::make_shared<entry>(n); index[all[n]->name] = n; }
	int sum() const { int s = 0; for (auto &p : all) s += p.second->each([&](int v) { return v + s; }); return s; }
};
int work(int n) { cache c; for (int i = 0; i < n; i++) c.put(i); return c.sum() + hidden(n); }
}
static int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
int main(int argc, char **argv)
{
	std::vector<std::string> v;
	for (int i = 0; i < argc * 10; i++)
		v.push_back(std::to_string(store::work(i)) + argv[0]);
	std::sort(v.begin(), v.end(), [](const std::string &a, const std::string &b) { return a.size() < b.size() || (a.size() == b.size() && a < b); });
	auto f = [&](auto x) { return malloc(x + v.size()); };
	void *p = f(argc), *q = f(3L);
	std::printf("%zu %d %p %p\n", v.size(), fact(argc), p, q);
}

import FeedSystem
import Glibc

exit(BenchmarkProgram.main(ProcessIdentity.arguments))

/* The program of the Python package: all of it is in the library beside it. */
int stepcast_main(int argc, char** argv);

int main(int argc, char** argv) { return stepcast_main(argc, argv); }

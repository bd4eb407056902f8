package main

func Example() {
	main()
	// Output: Treasury is one of 1
}

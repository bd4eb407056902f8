package main

func Example() {
	main()
	// Output: Treasury relays on sepolia
}

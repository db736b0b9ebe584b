from studies.layers.command import main

main()

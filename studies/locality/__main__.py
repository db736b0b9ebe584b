from studies.run import main

main("studies.locality")

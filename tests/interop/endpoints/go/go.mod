module outlast/endpoints

go 1.27

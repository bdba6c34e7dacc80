// Command report says how healthy datasets are, without writing to them: as a Lambda function where the Lambda runtime is
// there, else from the command line.
package main

import (
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// version is set by the build.
var version = "dev" //nolint:gochecknoglobals // the linker can set nothing else

func main() {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		lambda.Start(handler{stdout: os.Stdout, environ: os.Environ()}.handle)
		return
	}
	os.Exit(command{stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()}.run(os.Args[1:]))
}

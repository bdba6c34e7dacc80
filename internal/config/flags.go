package config

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// Command is what a command line says.
type Command struct {
	Flags     map[string]string // settings given by flag, for Input
	Datasets  []string          // arguments that are no flags, for Input
	Help      string            // the text to print, where it was asked for; then nothing else is to be done
	Version   bool              // likewise
	JSON      bool
	EMF       bool   // maintain only
	BreakLock string // maintain only: the token of the lock to break; then nothing else is to be done
	HTML      string // report only: the file to write
	Inspect   string // report only: the one file to take apart
}

// policyFlags are the settings that both commands have. All are texts: Resolve reads them, as it reads those of other sources.
type policyFlags struct {
	Grace            string `placeholder:"1h" help:"Keep a version this long after it was superseded."`
	AllowShortGrace  bool   `help:"Allow ages below 1h. Writers and readers slower than that lose what they work on."`
	Keep             string `placeholder:"1" help:"Always keep the newest N versions."`
	UnverifiedAge    string `placeholder:"7d" help:"Keep files that no version names this long."`
	Policies         string `placeholder:"RULES" help:"Policies for some datasets: 'stats: grace=1h keep=5; audit*: never'."`
	BeforeVersion    string `placeholder:"0" help:"Only versions below this one may go; 0 is off."`
	PinVersions      string `placeholder:"N,..." help:"Versions that stay, such as those that shallow clones were made of."`
	HasClones        bool   `help:"Shallow clones may name any file: remove no data, deletion or index files."`
	ErrorIfTagged    bool   `help:"Refuse to prune where a tagged version would expire otherwise."`
	DeletesPerSecond string `name:"deletes-per-second" placeholder:"0" help:"Objects to remove in a second at most; 0 is no limit of ours."`
	TargetRows       string `placeholder:"1048576" help:"Rows per fragment to aim for."`
	TargetBytes      string `placeholder:"0" help:"Bytes per fragment to aim for, such as 256MiB; 0 is off."`
	DeletionsOver    string `placeholder:"0" help:"Materialize deletions where their share is above this."`
	IndexPolicy      string `placeholder:"auto" help:"What to do with fragments that an index covers: auto, leave, uncover, remap or defer."`
	NoCompact        bool   `help:"Only prune."`
	NoPrune          bool   `help:"Only compact."`
	Timeout          string `placeholder:"none" help:"Time for the whole run, such as 10m."`
	Memory           string `placeholder:"256MiB" help:"Memory to stay under."`
	Table            string `placeholder:"NAME" help:"DynamoDB table for lock and ledger."`
	State            string `placeholder:"DIR" help:"Folder for lock and ledger where there is no table; the user's state folder if not given."`
	LogLevel         string `placeholder:"warn" help:"debug, info, warn or error."`
	Encryption       string `placeholder:"MODE" help:"Ask for this encryption when writing to S3: AES256, aws:kms or aws:kms:dsse."`
	KMSKey           string `name:"kms-key" placeholder:"KEY" help:"KMS key for it."`
	RequesterPays    bool   `help:"Pay for requests to a bucket of another's."`
	BucketOwner      string `placeholder:"ACCOUNT" help:"Account that must own the bucket."`
	Checksums        string `placeholder:"auto" help:"Checksums on requests to S3: auto, supported or required (what other makers' stores may need)."`
	JSON             bool   `name:"json" help:"Print one JSON document and nothing else."`
	Version          bool   `help:"Print the version."`
	Help             bool   `short:"h" help:"Print this text."`
}

type maintainFlags struct {
	URIs []string `arg:"" optional:"" name:"uri" help:"Datasets (s3://bucket/name.lance or a folder), or folders of *.lance datasets."`
	policyFlags
	DryRun    bool   `help:"Plan and print; write nothing at all."`
	Until     string `placeholder:"once" help:"once, or drained: repeat until no backlog is left."`
	BreakLock string `placeholder:"TOKEN" help:"Free the lock of the one dataset named, if it still has this token, and do nothing else."`
	EMF       bool   `name:"emf" help:"Write metrics to standard error."`
}

type reportFlags struct {
	URIs []string `arg:"" optional:"" name:"uri" help:"Datasets (s3://bucket/name.lance or a folder), or folders of *.lance datasets."`
	policyFlags
	HTML string `name:"html" placeholder:"FILE" help:"Write one HTML page."`
}

type inspectFlags struct {
	File    string `arg:"" optional:"" help:"A data file, or a file of an index: a path, or s3://bucket/key."`
	JSON    bool   `name:"json" help:"Print one JSON document and nothing else."`
	Version bool   `help:"Print the version."`
	Help    bool   `short:"h" help:"Print this text."`
}

const (
	maintainHelp = "Compacts and prunes Lance datasets. " +
		"Each setting may also come from the environment (LANCEKEEPER_GRACE and so on); a flag wins.\n\n" +
		"Example: maintain --dry-run --grace 1d s3://bucket/db/events.lance"
	reportHelp = "Measures the health of Lance datasets and says what the next pass would do; never writes to them. " +
		"'report inspect FILE' takes one file apart.\n\n" +
		"Example: report --html health.html s3://bucket/db"
	inspectHelp = "Takes one file of a Lance dataset apart.\n\n" +
		"Example: report inspect data/0a1b2c.lance"
)

// ParseMaintain reads the arguments of maintain, without the program's name. What is wrong with them is a *Error.
func ParseMaintain(args []string) (Command, error) {
	var flags maintainFlags
	c, err := parse(&flags, kong.Name("maintain"), kong.Description(maintainHelp), args)
	if err != nil {
		return Command{}, err
	}
	c.Datasets, c.JSON, c.Version, c.EMF = flags.URIs, flags.JSON, flags.Version, flags.EMF
	c.BreakLock = flags.BreakLock
	return c, nil
}

// ParseReport reads the arguments of report, likewise.
func ParseReport(args []string) (Command, error) {
	if len(args) > 0 && args[0] == "inspect" {
		return parseInspect(args[1:])
	}
	var flags reportFlags
	c, err := parse(&flags, kong.Name("report"), kong.Description(reportHelp), args)
	if err != nil {
		return Command{}, err
	}
	c.Datasets, c.JSON, c.Version, c.HTML = flags.URIs, flags.JSON, flags.Version, flags.HTML
	if c.JSON && c.HTML != "" {
		return Command{}, &Error{Setting: "--html", Value: c.HTML, Source: Flag, Detail: "can't be used together with --json"}
	}
	return c, nil
}

func parseInspect(args []string) (Command, error) {
	var flags inspectFlags
	c, err := parse(&flags, kong.Name("report inspect"), kong.Description(inspectHelp), args)
	if err != nil {
		return Command{}, err
	}
	c.Inspect, c.JSON, c.Version = flags.File, flags.JSON, flags.Version
	if c.Inspect == "" && !c.Version && c.Help == "" {
		return Command{}, &Error{Setting: "FILE", Source: Flag, Detail: "must name one file"}
	}
	return c, nil
}

// parse fills the flags, and notes which settings were among them. Help and Version win over what else is missing.
func parse(flags any, name, description kong.Option, args []string) (Command, error) {
	var help bytes.Buffer
	parser, err := kong.New(flags, name, description, kong.NoDefaultHelp(), kong.Writers(&help, &help),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}))
	if err != nil {
		return Command{}, err //nolint:wrapcheck // a mistake in the structs above, which a test would see
	}
	if args, err = arrange(parser.Model.Flags, args); err != nil {
		return Command{}, err
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return Command{}, usage(err)
	}
	c := Command{Flags: map[string]string{}}
	for _, path := range parsed.Path {
		if path.Flag == nil {
			continue
		}
		if path.Flag.Name == "help" {
			if err := parsed.PrintUsage(false); err != nil {
				return Command{}, usage(err)
			}
			c.Help = help.String()
		}
		c.note("--"+path.Flag.Name, parsed.FlagValue(path.Flag))
	}
	return c, nil
}

// note keeps what a flag says about a setting. Two flags say what not to do.
func (c *Command) note(flag string, value any) {
	i := slices.IndexFunc(settings(), func(s setting) bool { return s.flag == flag })
	if i < 0 {
		return
	}
	key := settings()[i].key
	switch v := value.(type) {
	case bool:
		c.Flags[key] = strconv.FormatBool(v != strings.HasPrefix(flag, "--no-"))
	case string:
		c.Flags[key] = v
	}
}

// arrange puts flags before the other arguments, since the parser takes those only in one go, and finds a flag that nobody
// knows, so that the error can name the nearest.
func arrange(known []*kong.Flag, args []string) ([]string, error) {
	takesValue, names := map[string]bool{}, []string{}
	for _, flag := range known {
		takesValue["--"+flag.Name] = !flag.IsBool()
		names = append(names, "--"+flag.Name)
	}
	var flags, others []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			others = append(others, args[i+1:]...)
			break
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			others = append(others, arg)
			continue
		}
		name, _, hasValue := strings.Cut(arg, "=")
		if strings.HasPrefix(arg, "--") && !slices.Contains(names, name) {
			return nil, unknown(Flag, name, names)
		}
		flags = append(flags, arg)
		if takesValue[name] && !hasValue && i+1 < len(args) && args[i+1] != "--" {
			i++
			flags = append(flags, args[i])
		}
	}
	return slices.Concat(flags, []string{"--"}, others), nil
}

// usage is any other mistake that the parser finds. Its text names the flag.
func usage(err error) error {
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		return &Error{Setting: "usage", Source: Flag, Detail: parse.Error()}
	}
	return &Error{Setting: "usage", Source: Flag, Detail: err.Error()}
}

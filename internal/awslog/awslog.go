// Package awslog has the AWS SDK log as the program does: its own lines are plain text on standard error, which readers of JSON lines
// stumble over.
package awslog

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aws/smithy-go/logging"
)

// Logger is one that the SDK takes.
type Logger struct {
	log *slog.Logger
	ctx context.Context //nolint:containedctx // the SDK hands it over apart from the line
}

// New returns a logger that writes to log; nothing is written where that is nil.
func New(log *slog.Logger) Logger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return Logger{log: log, ctx: context.Background()}
}

// Logf writes one line.
func (l Logger) Logf(class logging.Classification, format string, v ...any) {
	level := slog.LevelWarn
	if class == logging.Debug {
		level = slog.LevelDebug
	}
	if l.log.Enabled(l.ctx, level) {
		l.log.Log(l.ctx, level, "aws sdk", slog.String("detail", fmt.Sprintf(format, v...)))
	}
}

// WithContext returns a logger for one call.
func (l Logger) WithContext(ctx context.Context) logging.Logger { //nolint:ireturn // as the SDK wants it
	l.ctx = ctx
	return l
}

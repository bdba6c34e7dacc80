package manifest

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/objstore"
)

// Check refuses a manifest of which something is not understood that may bear on which files it needs or on how it must be
// rewritten. It must hold for the latest and every retained version before anything is written or deleted. Unknown fields
// of the schema's columns are no concern of either and pass. ErrUnsupported or ErrCorrupt.
func (m *Manifest) Check(object string) error {
	if err := checkFlags(object, m.GetReaderFeatureFlags(), m.GetWriterFeatureFlags()); err != nil {
		return err
	}
	if err := known(object, "the manifest", m.Manifest); err != nil {
		return err
	}
	if m.FragmentTree != nil {
		return lance.Unsupported("field", "fragment_tree in the manifest", object)
	}
	if len(m.GetClustering()) > 0 || m.GetMaxClusteringId() != 0 {
		return lance.Unsupported("field", "clustering in the manifest", object)
	}
	if (m.MaxAllocatedFieldId != nil) != (m.GetWriterFeatureFlags()&FlagUniqueFieldIDs != 0) {
		return lance.Corrupt(object, "max_allocated_field_id and writer feature flag %s must come together", flagName(15))
	}
	if v := m.GetDataFormat().GetVersion(); v != "" && !slices.Contains([]string{"0.1", "2.0", "2.1", "2.2", "2.3"}, v) {
		return lance.Unsupported("data format version", v, object)
	}
	for _, base := range m.GetBasePaths() {
		if err := known(object, fmt.Sprintf("base path %d", base.GetId()), base); err != nil {
			return err
		}
	}
	if err := m.checkFragments(object); err != nil {
		return err
	}
	return m.checkIndices(object)
}

func (m *Manifest) checkFragments(object string) error {
	seen := make(map[uint64]struct{}, len(m.GetFragments()))
	for _, f := range m.GetFragments() {
		where := fmt.Sprintf("fragment %d", f.GetId())
		if _, twice := seen[f.GetId()]; twice {
			return lance.Corrupt(object, "%s is listed twice", where)
		}
		seen[f.GetId()] = struct{}{}
		if f.GetId() > 1<<32-1 {
			return lance.Corrupt(object, "%s: ids end at 2^32-1", where)
		}
		if err := known(object, where, f); err != nil {
			return err
		}
		if f.ClusteringId != nil || len(f.GetMetadata()) > 0 {
			return lance.Unsupported("field", "clustering or metadata in "+where, object)
		}
		if err := m.checkFiles(object, where, f); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) checkFiles(object, where string, f *lancepb.DataFragment) error {
	files := slices.Clone(f.GetFiles())
	for _, o := range f.GetOverlays() {
		if err := known(object, "an overlay of "+where, o); err != nil {
			return err
		}
		if o.GetDataFile() == nil {
			return lance.Corrupt(object, "%s has an overlay without a file", where)
		}
		files = append(files, o.GetDataFile())
	}
	for _, file := range files {
		if err := known(object, "a data file of "+where, file); err != nil {
			return err
		}
		if err := objstore.CheckKey(file.GetPath()); err != nil {
			return lance.Corrupt(object, "data file of %s: %v", where, err)
		}
		if file.BaseId != nil && !m.hasBase(file.GetBaseId()) {
			return lance.Corrupt(object, "data file %s of %s names base path %d, which is not there", file.GetPath(), where, file.GetBaseId())
		}
	}
	d := f.GetDeletionFile()
	if d == nil {
		return nil
	}
	if err := known(object, "the deletion file of "+where, d); err != nil {
		return err
	}
	if t := d.GetFileType(); t != lancepb.DeletionFile_ARROW_ARRAY && t != lancepb.DeletionFile_BITMAP {
		return lance.Unsupported("deletion file type", fmt.Sprint(int(t)), object)
	}
	return nil
}

func (m *Manifest) checkIndices(object string) error {
	for _, index := range m.Indices {
		where := fmt.Sprintf("index %q", index.GetName())
		if err := known(object, where, index); err != nil {
			return err
		}
		if len(index.GetUuid().GetUuid()) != 16 {
			return lance.Corrupt(object, "%s has a uuid of %d bytes", where, len(index.GetUuid().GetUuid()))
		}
		if index.ClusteringId != nil || len(index.GetMetadata()) > 0 {
			return lance.Unsupported("field", "clustering or metadata in "+where, object)
		}
		for _, file := range index.GetFiles() {
			if err := known(object, "a file of "+where, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Manifest) hasBase(id uint32) bool {
	return slices.ContainsFunc(m.GetBasePaths(), func(b *lancepb.BasePath) bool { return b.GetId() == id })
}

// known refuses a message that holds fields which are not in our definition of it.
func known(object, where string, message proto.Message) error {
	unknown := message.ProtoReflect().GetUnknown()
	if len(unknown) == 0 {
		return nil
	}
	number, _, n := protowire.ConsumeTag(unknown)
	if n < 0 {
		return lance.Corrupt(object, "%s ends in bytes that are no field", where)
	}
	return lance.Unsupported("field", fmt.Sprintf("%d in %s", number, where), object)
}

package powerloss

import (
	"os"
	"path/filepath"
)

// image is the content of a disk that is off: the content of each file by name.
type image map[string][]byte

func (i image) save(directory string) error {
	for name, content := range i {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func loadImage(directory string) (image, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	loaded := make(image)
	for _, entry := range entries {
		loaded[entry.Name()], err = os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

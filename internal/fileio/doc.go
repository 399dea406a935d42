// Package fileio reads and writes the files of commands safely. Only regular files are read. A file
// is written completely or not at all, and files of the user are replaced only on request. Folders
// of results have a mark that lists the files of miplc, and a lock that keeps other processes out.
//
// It does not use google/renameio, which renames over symbolic links, devices and pipes, does not
// sync the folder, and does not support Windows.
package fileio

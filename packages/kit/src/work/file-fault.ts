const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of the path is a file',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
};

/** Why a file cannot be read: the file that the user named, and no other path. */
export function unreadable(file: string, error: Error): string {
  const { code = '' } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' ? `There is no file ${file}.` : `${file} cannot be read: ${REASONS[code] ?? error.message}.`;
}

/** Why a file cannot be written. It is written beside its place first, which its message must not show. */
export function unwritable(file: string, error: Error): string {
  const { code = '' } = error as NodeJS.ErrnoException;
  return `${file} cannot be written: ${code === 'ENOENT' ? 'its folder does not exist' : (REASONS[code] ?? error.message)}.`;
}

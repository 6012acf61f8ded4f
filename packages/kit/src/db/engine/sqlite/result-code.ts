/** What kind of failure SQLite reports, without the details in the upper bits; undefined for other errors. */
export function resultCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

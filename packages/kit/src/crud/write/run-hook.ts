import type { Item } from '../declare/item.ts';

/**
 * Runs a hook around its write. The row that `next` wrote counts, whatever the hook returns, so that audit and events tell the truth; a failed
 * write fails the request even when the hook caught it.
 */
export async function runHook<R>(
  name: string,
  write: (values: Item) => Promise<R>,
  run: (next: (values: Item) => Promise<R>) => Promise<unknown>,
): Promise<{ readonly written: R | undefined; readonly returned: unknown }> {
  let writing: Promise<R> | undefined;
  const returned = await run((values) => {
    if (writing !== undefined) throw new Error(`The ${name} called next() twice. A hook writes one row.`);
    return (writing = write(values));
  });
  return { written: await writing, returned };
}

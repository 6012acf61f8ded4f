// Builds the site into docs/site/dist; with --serve also serves it on loopback.
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build, preview } from 'astro';
import { close, createIndex } from 'pagefind';
import { fileAddress, llmsText, plainPages, root, siteContent } from './pages.ts';

process.env['ASTRO_TELEMETRY_DISABLED'] = '1';
// Where the shell says development, Astro would build the pages of a development server, whose search is only a notice.
process.env['NODE_ENV'] = 'production';

const folder = import.meta.dirname;
const { pages, files } = siteContent();

/** Starlight reads one folder of pages and copies one folder of files; both are rebuilt by each build. */
function fill(name: string, entries: Iterable<[path: string, write: (path: string) => void]>): void {
  rmSync(join(folder, name), { recursive: true, force: true });
  for (const [path, write] of entries) {
    mkdirSync(dirname(join(folder, name, path)), { recursive: true });
    write(join(folder, name, path));
  }
}

fill(
  '.pages',
  pages.map(({ slug, markdown }) => [`${slug === '' ? 'index' : slug}.md`, (path) => writeFileSync(path, markdown)]),
);
fill('.public', [
  ...[...files].map((file): [string, (path: string) => void] => [fileAddress(file).slice(1), (path) => cpSync(join(root, file), path)]),
  ...plainPages().map(({ path: place, markdown }): [string, (path: string) => void] => [place, (path) => writeFileSync(path, markdown)]),
  ['llms.txt', (path) => writeFileSync(path, llmsText())],
]);
cpSync(join(folder, 'public'), join(folder, '.public'), { recursive: true });

/**
 * Starlight ends the process of the indexer as soon as it says that it has written; on a busy machine files were cut off or empty then.
 * Its index is replaced by one whose files this process writes.
 */
async function writeSearchIndex(): Promise<void> {
  const dist = join(folder, 'dist');
  rmSync(join(dist, 'pagefind'), { recursive: true, force: true });
  const { index, errors } = await createIndex();
  if (index === undefined) throw new Error(`The search index was not created: ${errors.join(', ')}`);
  const added = await index.addDirectory({ path: dist });
  const made = await index.getFiles();
  const faults = [...added.errors, ...made.errors];
  if (faults.length > 0) throw new Error(`The search index was not built: ${faults.join(', ')}`);
  for (const { path, content } of made.files) {
    mkdirSync(dirname(join(dist, 'pagefind', path)), { recursive: true });
    writeFileSync(join(dist, 'pagefind', path), content);
  }
  await close();
}

// Pages kept from an earlier build would name its style sheets.
await build({ root: folder, force: true, logLevel: 'error' });
await writeSearchIndex();
console.log(`${pages.length} pages in docs/site/dist`);

if (process.argv.includes('--serve')) {
  const server = await preview({ root: folder, logLevel: 'warn', server: { host: '127.0.0.1' } });
  console.log(`\n  Documentation: http://127.0.0.1:${server.port}/   (Ctrl-C stops it)\n`);
}

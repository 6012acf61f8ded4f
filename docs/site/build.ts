// Builds the site into docs/site/dist; with --serve also serves it on loopback.
import { cpSync, globSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build, preview } from 'astro';
import { fileAddress, root, siteContent } from './pages.ts';

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
fill(
  '.public',
  [...files].map((file) => [fileAddress(file).slice(1), (path) => cpSync(join(root, file), path)]),
);
cpSync(join(folder, 'public'), join(folder, '.public'), { recursive: true });

/** Starlight ends the process of the indexer when it says that it has written; once, on a busy machine, its last file was still empty. */
function emptySearchFiles(): string[] {
  const index = join(folder, 'dist/pagefind');
  return globSync('**/*.*', { cwd: index }).filter((file) => statSync(join(index, file)).size === 0);
}

// Pages kept from an earlier build would name its style sheets.
for (let attempt = 1; attempt === 1 || emptySearchFiles().length > 0; attempt += 1) {
  if (attempt > 3) throw new Error(`The search index has empty files: ${emptySearchFiles().join(', ')}.`);
  await build({ root: folder, force: true, logLevel: 'error' });
}
console.log(`${pages.length} pages in docs/site/dist`);

if (process.argv.includes('--serve')) {
  const server = await preview({ root: folder, logLevel: 'warn', server: { host: '127.0.0.1' } });
  console.log(`\n  Documentation: http://127.0.0.1:${server.port}/   (Ctrl-C stops it)\n`);
}

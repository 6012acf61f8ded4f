// Lines of code per folder, without tests, blanks and comments: node scripts/count-lines.ts [folder …]
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';

const root = join(import.meta.dirname, '..');
const folders = process.argv.slice(2);

/** Lines that are left when comments are blank. */
function codeLines(path: string, text: string): number {
  let code = text;
  for (const { start, end } of parseSync(path, text).comments)
    code = code.slice(0, start) + code.slice(start, end).replaceAll(/[^\n]/g, ' ') + code.slice(end);
  return code.split('\n').filter((line) => line.trim() !== '').length;
}

const counts = new Map<string, number>();
for (const base of folders.length === 0 ? ['packages/kit/src', 'packages/config-server/src', 'packages/admin-ui/src'] : folders)
  for (const path of globSync(`${base}/**/*.{ts,tsx}`, { cwd: root, exclude: ['**/node_modules/**', '**/*.test.ts', '**/*.test.tsx'] })) {
    const [folder = base] = path.slice(base.length + 1).split('/');
    const place = folder.includes('.')
      ? base
      : `${base}/${
          folder === 'contrib'
            ? path
                .slice(base.length + 1)
                .split('/', 2)
                .join('/')
            : folder
        }`;
    counts.set(place, (counts.get(place) ?? 0) + codeLines(path, readFileSync(join(root, path), 'utf8')));
  }
let total = 0;
for (const [place, lines] of [...counts].sort(([a], [b]) => a.localeCompare(b))) {
  total += lines;
  process.stdout.write(`${String(lines).padStart(7)}  ${place}\n`);
}
process.stdout.write(`${String(total).padStart(7)}  in all\n`);

import { globSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');

/** A fenced block of a page: its language, the words after it, and where it starts. */
export interface CodeBlock {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  readonly flags: readonly string[];
  readonly text: string;
}

/** Every Markdown page a reader can land on, relative to the repository root. */
export function pages(): string[] {
  return globSync(['*.md', 'docs/**/*.md', 'packages/*/*.md', 'examples/**/*.md', 'benchmarks/*.md'], {
    cwd: root,
    exclude: ['**/node_modules/**', '**/.data/**', '**/.peers/**', 'docs/site/**'],
  })
    .map((path) => path.split(sep).join('/'))
    .sort();
}

export function read(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}

export function codeBlocks(page: string, text = read(page)): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  // Passages for readers of the published packages are comments until then; lines keep their numbers.
  const lines = text.replaceAll(/<!-- released\n[\s\S]*?-->/g, (passage) => passage.replaceAll(/[^\n]/g, '')).split('\n');
  for (let i = 0; i < lines.length; i++) {
    const open = /^(\s*)```(\w*)\s*(.*)$/.exec(lines[i] ?? '');
    if (open === null) continue;
    const [start, indent] = [i + 1, open[1] ?? ''];
    const body: string[] = [];
    for (i++; i < lines.length && (lines[i] ?? '').trim() !== '```'; i++) body.push((lines[i] ?? '').slice(indent.length));
    blocks.push({ page, line: start, language: open[2] ?? '', flags: (open[3] ?? '').split(/\s+/).filter(Boolean), text: body.join('\n') });
  }
  return blocks;
}

/** The file a block is shown as, from `title="…"` after its language, which the site puts above the block. */
export function titleOf({ flags }: CodeBlock): string | undefined {
  return flags.map((flag) => /^title="(.+)"$/.exec(flag)?.[1]).find((title) => title !== undefined);
}

/** Relative links of a page, code left out, each with its fragment. */
export function links(text: string): { target: string; fragment: string }[] {
  const prose = text.replaceAll(/```[\s\S]*?```/g, '').replaceAll(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1] ?? '')
    .filter((href) => !/^[a-z]+:/i.test(href))
    .map((href) => ({ target: href.split('#')[0] ?? '', fragment: href.split('#')[1] ?? '' }));
}

/** The anchors a renderer gives the headings of a page. */
export function anchors(text: string): Set<string> {
  const headings = text.replaceAll(/```[\s\S]*?```/g, '').matchAll(/^#{1,6}\s+(.+)$/gm);
  return new Set([...headings].map((match) => slug(match[1] ?? '')));
}

function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
}

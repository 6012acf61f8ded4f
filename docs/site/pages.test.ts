import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { llmsText, plainPages, sidebar, siteContent, sitePages, slugOf } from './pages.ts';

const page = (path: string, text: string) => ({ path, slug: slugOf(path), title: 'T', text });

test('a link between files becomes a link between pages, its fragment kept; code is left alone', () => {
  const { pages } = siteContent([
    page('docs/guide/webhooks.md', '# T\n\nSee [x](../reference/db.md#models), [y](#here) and `[z](no.md)`.\n\n```md\n[q](no.md)\n```\n'),
    page('docs/reference/db.md', '# T\n\n[back](../guide/webhooks.md), [out](https://example.com)\n'),
  ]);
  expect(pages[0]?.markdown).toContain('See [x](/reference/db/#models), [y](#here) and `[z](no.md)`.');
  expect(pages[0]?.markdown).toContain('[q](no.md)');
  expect(pages[1]?.markdown).toContain('[back](/guide/webhooks/), [out](https://example.com)');
});

test('a file that is no page is served as text, and a link to nothing ends the build', () => {
  const { pages, files } = siteContent([page('docs/guide/a.md', '# T\n\n[lock](../../package.json)\n')]);
  expect(pages[0]?.markdown).toContain('[lock](/files/package.json.txt)');
  expect([...files]).toEqual(['package.json']);
  expect(() => siteContent([page('docs/guide/a.md', '# T\n\n[gone](gone.md)\n')])).toThrow('docs/guide/a.md links to gone.md');
});

test('the title is the first heading, told once', () => {
  const { pages } = siteContent([page('docs/guide/a.md', '# T\n\nFirst words.\n\n## Next\n')]);
  expect(pages[0]?.markdown).toBe('---\ntitle: "T"\ndescription: "First words."\n---\n\nFirst words.\n\n## Next\n');
});

test('every page but the landing page is in the sidebar exactly once', () => {
  const links = sidebar().flatMap((entry) => ('items' in entry ? entry.items.map(({ link }) => link) : [entry.link]));
  const slugs = sitePages()
    .map(({ slug }) => slug)
    .filter((slug) => slug !== '');
  expect(links.toSorted()).toEqual(slugs.map((slug) => `/${slug}/`).toSorted());
});

test('every picture is on a page', () => {
  const { files } = siteContent(sitePages());
  const pictures = readdirSync(join(import.meta.dirname, '../images')).map((name) => `docs/images/${name}`);
  expect(pictures.filter((picture) => !files.has(picture))).toEqual([]);
});

test('a guide without a place among the doors ends the build', () => {
  expect(() => sidebar([page('docs/guide/unknown.md', '# T\n')])).toThrow('Give docs/guide/unknown.md a place in docs/site/contents.ts.');
});

test('each page is there as Markdown, with links to the Markdown of others, and llms.txt lists all of them', () => {
  const pages = [
    page('docs/README.md', '# Kit\n\nFor backend teams.\n'),
    page('docs/guide/webhooks.md', '# T\n\nSend events. See [x](../reference/db.md#models) and [home](../README.md).\n'),
    page('docs/reference/db.md', '# T\n\nTables.\n'),
  ];
  expect(plainPages(pages)).toEqual([
    { path: 'index.md', markdown: '# Kit\n\nFor backend teams.\n' },
    { path: 'guide/webhooks.md', markdown: '# T\n\nSend events. See [x](/reference/db.md#models) and [home](/index.md).\n' },
    { path: 'reference/db.md', markdown: '# T\n\nTables.\n' },
  ]);
  expect(llmsText(pages)).toBe(
    '# T\n\n> For backend teams.\n\n## Build\n\n- [T](/guide/webhooks.md): Send events. See x and home.\n\n## Reference\n\n- [T](/reference/db.md): Tables.\n',
  );
  const listed = llmsText();
  expect(plainPages().filter(({ path }) => path !== 'index.md' && !listed.includes(`(/${path})`))).toEqual([]);
});

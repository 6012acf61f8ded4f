import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize, resolve, sep } from 'node:path';
import { groups, top } from './contents.ts';

export const root = resolve(import.meta.dirname, '..', '..');

/** A page of the site, made from a Markdown file of the repository. */
export interface SitePage {
  /** The file, relative to the root of the repository. */
  readonly path: string;
  /** Its address on the site without slashes around it; empty for the landing page. */
  readonly slug: string;
  readonly title: string;
  readonly text: string;
}

/** What the site consists of: its pages with their links rewritten, and the other files of the repository they link to. */
export interface SiteContent {
  readonly pages: readonly { readonly slug: string; readonly markdown: string }[];
  readonly files: ReadonlySet<string>;
}

const PROJECT_PAGES = ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md'];
const PROJECT_DOCS = new Set(['docs/comparison.md', 'docs/benchmarks.md']);

/** Where a Markdown file is found on the site. */
export function slugOf(path: string): string {
  const name = path.replace(/\.md$/, '');
  if (PROJECT_PAGES.includes(path)) return `project/${name.toLowerCase()}`;
  if (PROJECT_DOCS.has(path)) return `project/${name.slice('docs/'.length)}`;
  return name.replace(/^docs\//, '').replace(/(^|\/)README$/, '');
}

export function sitePages(): SitePage[] {
  const found = globSync(['docs/**/*.md', 'examples/*/README.md'], { cwd: root, exclude: ['docs/site/**', '**/node_modules/**'] });
  return [...found.map((path) => path.split(sep).join('/')), ...PROJECT_PAGES].sort().map((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    return { path, slug: slugOf(path), title: titleOf(path, text), text };
  });
}

function titleOf(path: string, text: string): string {
  const title = /^# (.+)$/m.exec(text)?.[1];
  if (title === undefined) throw new Error(`${path} has no "# " heading, which is its title on the site.`);
  return title.replaceAll('`', '');
}

/** The pages as Markdown, for programs that read the site: beside each page, with links to one another. */
export function plainPages(pages: readonly SitePage[] = sitePages()): { readonly path: string; readonly markdown: string }[] {
  const slugs = new Map(pages.map(({ path, slug }) => [path, slug]));
  return pages.map((page) => ({
    path: plainPath(page.slug),
    markdown: outsideCode(page.text.replaceAll(/<!--[\s\S]*?-->\n*/g, ''), (prose) =>
      relink(prose, page.path, slugs, new Set(), (slug) => `/${plainPath(slug)}`),
    ),
  }));
}

/** `llms.txt`: the site at a glance for programs, every page by its title, its summary and where its Markdown is. */
export function llmsText(pages: readonly SitePage[] = sitePages()): string {
  const bySlug = new Map(pages.map((page) => [page.slug, page]));
  const line = ({ label, link }: { readonly label: string; readonly link: string }): string => {
    const page = bySlug.get(link.slice(1, -1));
    const about = page === undefined ? '' : summary(page.text.replace(/^# .+\n+/m, ''));
    return `- [${label}](/${plainPath(link.slice(1, -1))})${about === '' ? '' : `: ${about}`}`;
  };
  const home = bySlug.get('');
  const entries = sidebar(pages);
  const alone = entries.flatMap((entry) => ('items' in entry ? [] : [line(entry)]));
  const groupsOf = entries.flatMap((entry) => ('items' in entry ? [`## ${entry.label}\n\n${entry.items.map(line).join('\n')}`] : []));
  const about = home === undefined ? '' : `> ${summary(home.text.replace(/^# .+\n+/m, ''))}`;
  return `${[`# ${home?.title ?? 'Documentation'}`, about, ...(alone.length === 0 ? [] : [alone.join('\n')]), ...groupsOf].filter(Boolean).join('\n\n')}\n`;
}

function plainPath(slug: string): string {
  return `${slug === '' ? 'index' : slug}.md`;
}

/** Every page as Starlight wants it: front matter instead of the first heading, and links that work on the site. */
export function siteContent(pages: readonly SitePage[] = sitePages()): SiteContent {
  const slugs = new Map(pages.map(({ path, slug }) => [path, slug]));
  const files = new Set<string>();
  return {
    pages: pages.map((page) => {
      const body = page.text.replace(/^# .+\n+/m, '').replaceAll(/<!--[\s\S]*?-->\n*/g, '');
      const linked = outsideCode(body, (prose) => relink(prose, page.path, slugs, files));
      return { slug: page.slug, markdown: page.slug === '' ? landing(page, linked, files) : `${frontMatter(page, linked)}${linked}` };
    }),
    files,
  };
}

/** Leaves fenced blocks as they are. */
function outsideCode(text: string, change: (prose: string) => string): string {
  return text
    .split(/(^[ \t]*```[\s\S]*?^[ \t]*```[ \t]*$)/m)
    .map((part, index) => (index % 2 === 1 ? part : change(part)))
    .join('');
}

/** Inline code, which is left alone, or a link; its label may hold code. */
const CODE_OR_LINK = /`[^`\n]*`|\[((?:`[^`\n]*`|[^[\]`]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g;

function relink(
  prose: string,
  from: string,
  slugs: ReadonlyMap<string, string>,
  files: Set<string>,
  place = (slug: string): string => (slug === '' ? '/' : `/${slug}/`),
): string {
  return prose.replaceAll(CODE_OR_LINK, (whole, label: string, href: string | undefined) => {
    if (href === undefined || /^([a-z]+:|#|\/)/i.test(href)) return whole;
    const [target = '', fragment] = href.split('#');
    const path = normalize(join(dirname(from), target))
      .split(sep)
      .join('/')
      .replace(/\/$/, '');
    const slug = slugs.get(path) ?? slugs.get(`${path}/README.md`);
    const anchor = fragment === undefined ? '' : `#${fragment}`;
    if (slug !== undefined) return `[${label}](${place(slug)}${anchor})`;
    if (path === 'README.md') return `[${label}](${place('')}${anchor})`;
    if (!existsSync(join(root, path))) throw new Error(`${from} links to ${href}, which does not exist.`);
    // A folder without a README has nothing to show here.
    if (statSync(join(root, path)).isDirectory()) return label;
    files.add(path);
    return `[${label}](${fileAddress(path)})`;
  });
}

/** Files that are no pages are served as they are: pictures under their name, everything else as text a browser shows. */
export function fileAddress(path: string): string {
  return /\.(png|svg|webp)$/.test(path) ? `/files/${path}` : `/files/${path}.txt`;
}

function frontMatter(page: SitePage, body: string): string {
  return `---\ntitle: ${JSON.stringify(page.title)}\ndescription: ${JSON.stringify(summary(body))}\n---\n\n`;
}

/** The first paragraph, as the text of search results and link previews. */
function summary(body: string): string {
  const paragraph = body.split(/\n{2,}/).find((part) => /^[\p{L}`[]/u.test(part)) ?? '';
  return paragraph
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .replaceAll('\n', ' ')
    .trim()
    .slice(0, 300);
}

/** What an operator does on an ordinary day, on the landing page. */
const PICTURES: Readonly<Record<string, string>> = {
  'own-table': 'Your own records in the admin site',
  'api-key': 'An API key with its requests of 30 days',
  delivery: 'A webhook delivery with its payload and attempts',
  'audit-log': 'The audit log: who did what',
};

/** The landing page: its first paragraph as the hero, and under it four screens that an operator sees. */
function landing(page: SitePage, body: string, files: Set<string>): string {
  const [tagline = '', ...rest] = body.split(/\n{2,}/);
  const hero = {
    tagline: tagline.replaceAll('\n', ' '),
    actions: [
      { text: 'Five-minute tour', link: '/tour/' },
      { text: 'A first API', link: '/guide/first-api/', variant: 'minimal' },
    ],
  };
  // With the menu, unlike the splash template: on a phone there is no other way to the pages.
  const head = { title: page.title, description: hero.tagline, template: 'doc', tableOfContents: false, hero };
  const pictures = Object.entries(PICTURES).map(([name, words]) => {
    const themes = ['light', 'dark'].map((theme) => {
      const picture = `docs/images/admin-${name}-${theme}.png`;
      files.add(picture);
      return `<img class="${theme}-only" src="${fileAddress(picture)}" alt="${words}" />`;
    });
    return `<figure>${themes.join('')}<figcaption>${words}</figcaption></figure>`;
  });
  rest.unshift(`<div class="screens">${pictures.join('\n')}</div>`);
  // JSON is YAML.
  return `---\n${JSON.stringify(head)}\n---\n\n${rest.join('\n\n')}`;
}

export interface SidebarGroup {
  readonly label: string;
  readonly collapsed: boolean;
  readonly items: { readonly label: string; readonly link: string }[];
}

/** The sidebar: the order of contents.ts, and a place for every page that is not in it. */
export function sidebar(pages: readonly SitePage[] = sitePages()): (SidebarGroup | SidebarGroup['items'][number])[] {
  const item = (page: SitePage) => ({ label: page.title, link: `/${page.slug}/` });
  const bySlug = new Map(pages.map((page) => [page.slug, page]));
  const rest = pages.filter(({ slug }) => slug !== '' && !top.includes(slug));
  const doors = new Set(groups.flatMap(({ guides = [] }) => guides.map((name) => `guide/${name}`)));
  const lost = rest.filter(({ slug }) => slug.startsWith('guide/') && !doors.has(slug));
  if (lost.length > 0) throw new Error(`Give ${lost.map(({ path }) => path).join(', ')} a place in docs/site/contents.ts.`);
  const grouped = groups.map(({ label, guides, prefix = 'guide/', first = guides ?? [], collapsed = false }) => {
    const place = ({ slug }: SitePage): number => {
      const index = first.indexOf(slug.slice(prefix.length));
      return index === -1 ? first.length : index;
    };
    const belongs = ({ slug }: SitePage): boolean =>
      guides === undefined ? `${slug}/`.startsWith(prefix) : guides.includes(slug.slice(prefix.length)) && slug.startsWith(prefix);
    const own = rest.filter(belongs).sort((a, b) => place(a) - place(b) || (a.slug < b.slug ? -1 : 1));
    return { label, collapsed, items: own.map(item) };
  });
  return [
    ...top.flatMap((slug) => {
      const page = bySlug.get(slug);
      return page === undefined ? [] : [item(page)];
    }),
    ...grouped.filter(({ items }) => items.length > 0),
  ];
}

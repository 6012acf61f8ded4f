import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { StartUpError } from '../../app/check/start-up-error.ts';
import type { App } from '../../app/declare/module.ts';
import { DOCUMENTS } from './documents.ts';
import type { PageFacts } from './layout.ts';
import type { PagesSettings } from './options.ts';

interface PageFile {
  readonly content: string;
  readonly mediaType: string;
  readonly etag: string;
}

const FOLDER = new URL('site/', import.meta.url);
const MEDIA_TYPES: Readonly<Record<string, string>> = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' };

/** The pages of one app: documents and files, made once when the app is ready. */
export class PageSite {
  readonly settings: PagesSettings;
  #documents: ReadonlyMap<string, string | null> = new Map();
  #files = new Map<string, PageFile>();

  constructor(settings: PagesSettings) {
    this.settings = settings;
  }

  /** Null for a page that this app has no use for. */
  document(name: string): string | null {
    return this.#documents.get(name) ?? null;
  }

  file(name: string): PageFile | undefined {
    return this.#files.get(name);
  }

  prepare(app: App): void {
    const { settings } = this;
    const parts = { settings, title: settings.title ?? app.title, facts: factsOf(app, settings) };
    this.#documents = new Map(Object.entries(DOCUMENTS).map(([name, make]) => [name, make(parts)]));
    this.#files = new Map(
      readdirSync(FOLDER).map((name) => {
        const text = readFileSync(new URL(name, FOLDER), 'utf8');
        return [name, fileOf(name, name === 'pages.css' ? text + ownColors(settings) : text)];
      }),
    );
    this.#files.set('uqr.js', fileOf('uqr.js', readFileSync(new URL(import.meta.resolve('uqr')), 'utf8')));
  }
}

function factsOf({ registry, routes, controllers, modules }: App, { prefix, home }: PagesSettings): PageFacts {
  const { accountRoutes: account, tenantRoutes: tenants } = registry;
  const mounted = { routes, controllers };
  const base = account?.base(mounted) ?? null;
  if (account === null || base === null) {
    const message =
      account === null
        ? 'pages() needs a login whose routes it can call.'
        : `pages() needs ${account.needs}, which is not mounted: its pages call it.`;
    const hint =
      account === null ? 'Add accounts() or betterAuth() to the modules.' : `Mount it: mount: { '/v1': { '/account': ${account.needs} } }.`;
    throw new StartUpError([{ id: 'E006', message, hint }]);
  }
  const tenantBase = tenants?.base(mounted) ?? null;
  if (tenantBase === null && modules.some(({ name }) => name === 'tenants'))
    throw new StartUpError([
      {
        id: 'E006',
        message: 'pages() needs TenantController, which is not mounted: its pages call it.',
        hint: "Mount it: mount: { '/v1': { '/tenants': TenantController } }.",
      },
    ]);
  // Relative, so that they are right behind a proxy that adds or removes a prefix.
  const relative = (path: string) => `${'../'.repeat(prefix.split('/').length - 1)}${path.slice(1)}`;
  const { kind, signUp, reset, secondFactor } = account;
  return {
    account: { kind, base: relative(base), signUp, reset, secondFactor },
    tenants:
      tenants === null || tenantBase === null
        ? null
        : {
            kind: tenants.kind,
            base: relative(tenantBase),
            roles: tenants.roles,
            managers: tenants.managers,
            registration: tenants.registration,
          },
    home: home ?? './',
  };
}

function ownColors({ colors: { accent, accentDark } }: PagesSettings): string {
  const light = accent === undefined ? '' : `\n:root { --accent: ${accent}; --link: ${accent}; }\n`;
  const dark = accentDark ?? accent;
  return dark === undefined
    ? light
    : `${light}\n@media (prefers-color-scheme: dark) { :root { --accent: ${accent ?? dark}; --link: ${dark}; } }\n`;
}

function fileOf(name: string, content: string): PageFile {
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 27)}"`;
  return { content, mediaType: MEDIA_TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream', etag };
}

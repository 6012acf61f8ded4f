import { html, type Html } from './html.ts';
import type { PagesSettings } from './options.ts';

/** What the scripts are told: where the routes are that they call, relative to the page, and what these offer. */
export interface PageFacts {
  readonly account: {
    readonly kind: string;
    readonly base: string;
    readonly signUp: boolean;
    readonly reset: boolean;
    readonly secondFactor: boolean;
  };
  readonly tenants: {
    readonly kind: string;
    readonly base: string;
    readonly roles: readonly string[];
    readonly managers: readonly string[];
    readonly registration: boolean;
  } | null;
  readonly home: string;
}

/** What a page is made of. */
export interface PageParts {
  readonly settings: PagesSettings;
  readonly title: string;
  readonly facts: PageFacts;
}

/** A whole document. `name` says which script runs; pages of one's own account have the navigation. */
export function documentOf({ settings, title, facts }: PageParts, name: string, heading: string, content: Html, own: boolean): string {
  const { words, language, logo } = settings;
  const navigation = html`<nav>
    <a href="./" data-nav="account">${words.account}</a>
    ${facts.tenants === null ? null : html`<a href="tenants" data-nav="tenants">${words.tenants}</a>`}
    <button type="button" class="plain" data-sign-out>${words.signOut}</button>
  </nav>`;
  return html`<!doctype html>
    <html lang="${language}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${heading} · ${title}</title>
        <link rel="stylesheet" href="assets/pages.css" />
        <script type="module" src="assets/pages.js"></script>
      </head>
      <body data-page="${name}" data-facts="${JSON.stringify(facts)}" data-failed="${words.failed}">
        <header>
          <a class="brand" href="${own ? './' : 'sign-in'}"
            >${logo === null ? null : html`<img src="${logo}" alt="" />`}<span>${title}</span></a
          >
          ${own ? navigation : null}
        </header>
        <main class="${own ? 'wide' : 'narrow'}">
          <h1>${heading}</h1>
          <p class="notice" role="status" data-notice hidden></p>
          ${content}
        </main>
        ${own ? presence(words) : null}
      </body>
    </html> `.markup;
}

/** Asked by the script when a route wants the person to prove to be there, and before what cannot be undone. */
function presence(words: PagesSettings['words']): Html {
  return html`<dialog id="presence">
      <form method="dialog">
        <h2>${words.presenceTitle}</h2>
        <p>${words.presenceHelp}</p>
        ${field('password', words.password, { type: 'password', autocomplete: 'current-password' })} ${codeField(words)}
        <p class="fault" role="alert" data-fault hidden></p>
        <p class="actions">
          <button value="ok">${words.goOn}</button><button value="cancel" class="plain" formnovalidate>${words.cancel}</button>
        </p>
      </form>
    </dialog>
    <dialog id="sure">
      <form method="dialog">
        <p>${words.sure}</p>
        <p class="actions">
          <button value="ok" class="bad">${words.goOn}</button><button value="cancel" class="plain">${words.cancel}</button>
        </p>
      </form>
    </dialog>`;
}

interface FieldFacts {
  readonly type?: string;
  readonly autocomplete?: string;
  readonly help?: string;
  readonly required?: boolean;
}

/** A labelled input. */
export function field(name: string, label: string, { type = 'text', autocomplete = 'off', help, required = true }: FieldFacts = {}): Html {
  const described = help === undefined ? null : html`aria-describedby="help-${name}"`;
  return html`<label
      ><span>${label}</span>
      <input name="${name}" type="${type}" autocomplete="${autocomplete}" ${required ? html`required` : null} ${described}
    /></label>
    ${help === undefined ? null : html`<small class="help" id="help-${name}">${help}</small>`}`;
}

/** Shown once a route has asked for a code. */
export function codeField({ code, codeHelp }: PagesSettings['words']): Html {
  return html`<div data-code hidden>${field('code', code, { autocomplete: 'one-time-code', help: codeHelp, required: false })}</div>`;
}

/** A form that the script of its page sends. */
export function form(name: string, content: Html, submit: string): Html {
  return html`<form id="${name}" method="post" novalidate>
    ${content}
    <p class="fault" role="alert" data-fault hidden></p>
    <p class="actions"><button>${submit}</button></p>
  </form>`;
}

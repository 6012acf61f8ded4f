import { html, type Html } from './html.ts';
import { codeField, documentOf, field, form, type PageParts } from './layout.ts';
import { rolesField, templates } from './tables.ts';

const EMAIL = { type: 'email', autocomplete: 'email' } as const;
const NEW_PASSWORD = { type: 'password', autocomplete: 'new-password' } as const;
const CURRENT_PASSWORD = { type: 'password', autocomplete: 'current-password' } as const;

/** The documents by their path below the prefix; null where this app has none. */
export const DOCUMENTS: Readonly<Record<string, (parts: PageParts) => string | null>> = {
  '': profile,
  'sign-in': signIn,
  'sign-up': signUp,
  forgot,
  link,
  tenants,
  members,
};

function signIn(parts: PageParts): string {
  const { settings, facts } = parts;
  const { words } = settings;
  const byEmail = facts.account.kind === 'better-auth';
  const content = html`<section class="card" data-signed-in hidden>
      <p>${words.signedInAs} <strong data-name></strong>.</p>
      <p class="actions">
        <a class="button" data-continue href="./">${words.goOn}</a
        ><button type="button" class="plain" data-sign-out>${words.signOut}</button>
      </p>
    </section>
    <section class="card">
      ${form(
        'sign-in',
        html`${field('login', byEmail ? words.email : words.login, { autocomplete: 'username', ...(byEmail ? { type: 'email' } : {}) })}
        ${field('password', words.password, CURRENT_PASSWORD)} ${codeField(words)}`,
        words.signIn,
      )}
      ${facts.account.reset ? html`<p><a href="forgot">${words.forgot}</a></p>` : null}
      ${facts.account.signUp ? html`<p>${words.noAccount} <a href="sign-up" data-keep>${words.signUp}</a></p>` : null}
    </section>`;
  return documentOf(parts, 'sign-in', words.signIn, content, false);
}

function signUp(parts: PageParts): string | null {
  const { settings, facts } = parts;
  const { words } = settings;
  if (!facts.account.signUp) return null;
  const content = html`<section class="card">
    ${form(
      'sign-up',
      html`${field('name', words.name, { autocomplete: 'name' })} ${field('email', words.email, EMAIL)}
      ${field('password', words.password, NEW_PASSWORD)}`,
      words.signUp,
    )}
    <p data-done hidden>${words.verifySent}</p>
    <p><a href="sign-in" data-keep>${words.haveAccount}</a></p>
  </section>`;
  return documentOf(parts, 'sign-up', words.signUp, content, false);
}

function forgot(parts: PageParts): string | null {
  const { settings, facts } = parts;
  const { words } = settings;
  if (!facts.account.reset) return null;
  const login =
    facts.account.kind === 'better-auth' ? field('login', words.email, EMAIL) : field('login', words.login, { autocomplete: 'username' });
  const content = html`<section class="card">
    <p>${words.forgotHelp}</p>
    ${form('forgot', login, words.sendLink)}
    <p data-done hidden>${words.linkSent}</p>
    <p><a href="sign-in">${words.signIn}</a></p>
  </section>`;
  return documentOf(parts, 'forgot', words.forgotTitle, content, false);
}

/** Takes the links of mails. The token is in the fragment, which no server sees; the script shows the part that it is for. */
function link(parts: PageParts): string {
  const { settings, facts } = parts;
  const { words } = settings;
  const password = field('password', words.newPassword, NEW_PASSWORD);
  const part = (purpose: string, heading: string, content: Html): Html =>
    html`<section class="card" data-purpose="${purpose}" data-heading="${heading}" hidden>${content}</section>`;
  const content = html`${part('reset', words.resetTitle, form('reset', password, words.savePassword))}
    ${part('invitation', words.invitedTitle, form('invitation', password, words.savePassword))}
    ${part('email', words.emailTitle, form('email', html``, words.useAddress))}
    ${part(
      'tenant-invitation',
      words.joinTitle,
      html`<p>${words.joinHelp}</p>
        <div data-known hidden>
          <p>${words.signedInAs} <strong data-name></strong>.</p>
          ${form('join', html``, words.join)}
        </div>
        <div data-unknown hidden>
          <p class="actions">
            <a class="button" href="sign-in" data-back>${words.haveAccount}</a>
            ${facts.account.signUp ? html`<a class="button plain" href="sign-up" data-back>${words.signUp}</a>` : null}
          </p>
          ${
            facts.tenants?.registration === true
              ? form(
                  'join-new',
                  html`${field('username', words.username, { autocomplete: 'username' })}${field('password', words.password, NEW_PASSWORD)}`,
                  words.joinNew,
                )
              : null
          }
        </div>`,
    )}
    <section class="card" data-purpose="done" hidden>
      <p data-text></p>
      <p><a class="button" href="sign-in">${words.signIn}</a></p>
    </section>
    <section class="card" data-purpose="dead" hidden>
      <p>${words.deadLink}</p>
      <p><a href="sign-in">${words.signIn}</a></p>
    </section>
    <p hidden data-text-password>${words.passwordSet}</p>
    <p hidden data-text-email>${words.addressUsed}</p>`;
  return documentOf(parts, 'link', words.account, content, false);
}

function profile(parts: PageParts): string {
  const { settings, facts } = parts;
  const { words } = settings;
  const withPassword = facts.account.kind === 'better-auth' ? field('password', words.password, CURRENT_PASSWORD) : html``;
  const factor = html`<section class="card" id="factor">
    <h2>${words.secondFactor}</h2>
    <p data-state="off" hidden>${words.factorOff}</p>
    <p data-state="on" hidden>${words.factorOn}</p>
    <p data-state="required" class="fault" hidden>${words.factorRequired}</p>
    <div data-part="begin" hidden>${form('factor-begin', withPassword, words.factorBegin)}</div>
    <div data-part="confirm" hidden>
      <p>${words.factorSecret}</p>
      <svg class="qr" data-picture role="img" aria-label="${words.factorPicture}"><path /></svg>
      <p><code data-secret></code></p>
      <p><a data-uri>${words.factorOpen}</a></p>
      ${form('factor-confirm', field('code', words.code, { autocomplete: 'one-time-code' }), words.confirm)}
    </div>
    <div data-part="codes" hidden>
      <p>${words.recoveryCodes}</p>
      <ul data-codes></ul>
    </div>
    <div data-part="on" hidden>
      ${form('factor-renew', withPassword, words.renewCodes)}${form('factor-remove', withPassword, words.factorRemove)}
    </div>
  </section>`;
  const content = html`<section class="card">
      <p><strong data-name></strong></p>
      <p data-email></p>
    </section>
    <section class="card">
      <h2>${words.changePassword}</h2>
      ${form(
        'password',
        html`${field('current', words.currentPassword, CURRENT_PASSWORD)}${field('next', words.newPassword, NEW_PASSWORD)}`,
        words.savePassword,
      )}
      <p hidden data-text-changed>${words.passwordChanged}</p>
    </section>
    ${
      facts.account.kind === 'accounts' && facts.account.reset
        ? html`<section class="card">
            <h2>${words.changeEmail}</h2>
            ${form('new-email', field('email', words.email, EMAIL), words.sendLink)}
            <p hidden data-done>${words.emailSent}</p>
          </section>`
        : null
    }
    ${facts.account.secondFactor ? factor : null}
    <section class="card">
      <h2>${words.sessions}</h2>
      <ul class="rows" id="sessions"></ul>
      <p class="actions"><button type="button" class="plain" id="end-others">${words.endOthers}</button></p>
      <p hidden data-text-ended>${words.othersEnded}</p>
    </section>
    ${templates.session(words)}`;
  return documentOf(parts, 'profile', words.account, content, true);
}

function tenants(parts: PageParts): string | null {
  const { settings, facts } = parts;
  const { words } = settings;
  if (facts.tenants === null) return null;
  const content = html`<section class="card">
      <ul class="rows" id="tenants"></ul>
      <p data-empty hidden>${words.noTenants}</p>
    </section>
    <section class="card">
      <h2>${words.newTenant}</h2>
      ${form('new-tenant', field('name', words.tenantName, { autocomplete: 'organization' }), words.create)}
    </section>
    <p hidden data-text-chosen>${words.chosen}</p>
    ${templates.tenant(words)}`;
  return documentOf(parts, 'tenants', words.tenants, content, true);
}

function members(parts: PageParts): string | null {
  const { settings, facts } = parts;
  const { words } = settings;
  if (facts.tenants === null) return null;
  const content = html`<section class="card">
      <h2>${words.members}</h2>
      <ul class="rows" id="members"></ul>
      <p class="actions"><button type="button" class="plain bad" id="leave">${words.leave}</button></p>
    </section>
    <section class="card" data-managers hidden>
      <h2>${words.inviteTitle}</h2>
      ${form('invite', html`${field('email', words.email, EMAIL)}${rolesField(words, facts.tenants.roles)}`, words.invite)}
      <p hidden data-once>${words.invitationLink} <code data-link></code></p>
      <p hidden data-text-invited>${words.invited}</p>
    </section>
    <section class="card" data-managers hidden>
      <h2>${words.invitations}</h2>
      <ul class="rows" id="invitations"></ul>
      <p data-empty hidden>${words.noInvitations}</p>
    </section>
    <p hidden data-text-saved>${words.saved}</p>
    ${templates.member(words, facts.tenants.roles)}${templates.invitation(words)}`;
  return documentOf(parts, 'members', words.members, content, true);
}

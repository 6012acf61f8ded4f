import { html, type Html } from './html.ts';
import type { Words } from './words.ts';

/** One role of a person. The highest is last chosen: new people are ordinary members. */
export function rolesField({ roles: label }: Words, roles: readonly string[]): Html {
  const lowestFirst = roles.toReversed();
  return html`<label
    ><span>${label}</span
    ><select name="role">
      ${lowestFirst.map((role) => html`<option>${role}</option>`)}
    </select></label
  >`;
}

/** Rows of lists, cloned by the scripts: these have no words of their own. */
export const templates = {
  session: (words: Words): Html =>
    html`<template id="session"
      ><li>
        <div>
          <strong data-field="device"></strong> <span class="tag" data-field="current">${words.thisSession}</span>
          <small><span data-field="address"></span> ${words.lastSeen} <time data-field="seen"></time></small>
        </div>
        <div class="actions"><button type="button" class="plain" data-do="end">${words.endSession}</button></div>
        <span hidden data-unknown>${words.unknownDevice}</span>
      </li></template
    >`,

  tenant: (words: Words): Html =>
    html`<template id="tenant"
      ><li>
        <div><strong data-field="name"></strong> <small data-field="roles"></small></div>
        <div class="actions">
          <a class="button plain" data-link>${words.members}</a
          ><button type="button" class="plain" data-do="choose">${words.choose}</button>
        </div>
      </li></template
    >`,

  member: (words: Words, roles: readonly string[]): Html =>
    html`<template id="member"
      ><li>
        <div><strong data-field="name"></strong> <small data-field="email"></small> <span class="tag" data-field="roles"></span></div>
        <form class="actions" data-managers hidden>
          ${rolesField(words, roles)}<button class="plain">${words.saveRoles}</button>
          <button type="button" class="plain bad" data-do="remove">${words.remove}</button>
        </form>
      </li></template
    >`,

  invitation: (words: Words): Html =>
    html`<template id="invitation"
      ><li>
        <div>
          <strong data-field="email"></strong> <span class="tag" data-field="roles"></span>
          <small>${words.expires} <time data-field="expires"></time></small>
        </div>
        <div class="actions">
          <button type="button" class="plain" data-do="resend">${words.resend}</button>
          <button type="button" class="plain bad" data-do="revoke">${words.revoke}</button>
        </div>
      </li></template
    >`,
};

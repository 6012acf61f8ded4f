// The script of every page: which login and which tenants the application has is in `data-facts`.
import { facts, fail, find } from './dom.js';
import { forgot, link, signIn, signUp, wireSignOut } from './enter.js';
import { members, tenants as tenantList } from './members.js';
import { profile } from './profile.js';

const open = { 'sign-in': signIn, 'sign-up': signUp, forgot, link };
const own = { profile, tenants: tenantList, members };

async function start() {
  const name = document.body.dataset.page;
  const login = await import(`./${facts.account.kind}.js`);
  const tenants = facts.tenants === null ? null : await import(`./${facts.tenants.kind}.js`);
  wireSignOut(login);
  if (name in open) {
    await open[name]({ login, tenants });
    return;
  }
  const current = find(`[data-nav="${name === 'profile' ? 'account' : 'tenants'}"]`);
  current?.setAttribute('aria-current', 'page');
  const person = await login.me();
  if (person === null) location.replace(`sign-in?return_to=${encodeURIComponent(location.pathname + location.search)}`);
  else await own[name]({ login, tenants, person });
}

start().then(() => document.body.setAttribute('data-ready', ''), fail);

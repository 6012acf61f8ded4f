// One's own account: password, address, second factor, sessions.
import { attempt, drawRows, fail, fill, find, isSure, notify, onClick, onSubmit, show, timeText, withPresence } from './dom.js';

export async function profile({ login, person }) {
  find('[data-name]').textContent = person.name;
  find('[data-email]').textContent = person.email ?? '';
  onSubmit(find('form#password'), async (values, form) => {
    await withPresence(login, () => login.changePassword(values));
    form.reset();
    notify(find('[data-text-changed]').textContent);
    await drawSessions(login);
  });
  onSubmit(find('form#new-email'), async (values, form) => {
    await withPresence(login, () => login.changeEmail(values));
    form.reset();
    show(find('[data-done]', form.parentElement));
  });
  const card = find('#factor');
  if (card !== null) await factor(login, card);
  const others = find('#end-others');
  others.addEventListener('click', () =>
    attempt(others.parentElement, async () => {
      await login.endOthers();
      notify(find('[data-text-ended]').textContent);
      await drawSessions(login);
    }),
  );
  await drawSessions(login);
}

async function drawSessions(login) {
  const sessions = await login.sessions();
  drawRows(find('#sessions'), 'session', sessions, (element, row) => {
    const device = row.device || find('[data-unknown]', element).textContent;
    fill(element, { device, address: row.address ?? '', current: row.isCurrent, seen: timeText(row.seenAt) });
    show(find('[data-do="end"]', element), !row.isCurrent);
    onClick(element, 'end', async () => {
      await login.endSession(row);
      await drawSessions(login);
    });
  });
}

async function factor(login, card) {
  const showParts = (...names) => {
    for (const part of card.querySelectorAll('[data-part]')) show(part, names.includes(part.dataset.part));
  };
  const draw = async (...more) => {
    const { isOn, isRequired } = await login.factor();
    for (const state of card.querySelectorAll('[data-state]'))
      show(state, { off: !isOn, on: isOn, required: isRequired && !isOn }[state.dataset.state]);
    showParts(isOn ? 'on' : 'begin', ...more);
  };
  const showCodes = (codes) => {
    find('[data-codes]', card).replaceChildren(
      ...codes.map((code) => {
        const item = document.createElement('li');
        item.append(Object.assign(document.createElement('code'), { textContent: code }));
        return item;
      }),
    );
  };
  const link = find('[data-uri]', card);
  onSubmit(find('form#factor-begin'), async (values, form) => {
    const { secret, uri } = await withPresence(login, () => login.beginFactor(values));
    form.reset();
    find('[data-secret]', card).textContent = secret;
    // Nothing but the address of an authenticator app.
    if (uri.startsWith('otpauth:')) link.href = uri;
    await drawPicture(find('[data-picture]', card), uri);
    showParts('confirm');
  });
  onSubmit(find('form#factor-confirm'), async (values, form) => {
    showCodes(await withPresence(login, () => login.confirmFactor(values)));
    form.reset();
    find('[data-secret]', card).textContent = '';
    find('[data-picture] path', card).removeAttribute('d');
    link.removeAttribute('href');
    await draw('codes');
    await drawSessions(login);
  });
  onSubmit(find('form#factor-renew'), async (values, form) => {
    showCodes(await withPresence(login, () => login.renewCodes(values)));
    form.reset();
    await draw('codes');
  });
  onSubmit(find('form#factor-remove'), async (values, form) => {
    if (!(await isSure())) return;
    await withPresence(login, () => login.removeFactor(values));
    form.reset();
    await draw();
    await drawSessions(login);
  });
  await draw().catch(fail);
}

/** A QR code, drawn here: the secret is sent to nobody. */
async function drawPicture(picture, text) {
  const { encode } = await import('./uqr.js');
  const { data, size } = encode(text, { ecc: 'M', border: 2 });
  const squares = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  picture.setAttribute('viewBox', `0 0 ${size} ${size}`);
  find('path', picture).setAttribute('d', squares.join(''));
}

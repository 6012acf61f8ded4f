// What the pages do with their own document. Everything from a route becomes text, never markup.

export const facts = JSON.parse(document.body.dataset.facts);

export const find = (selector, within = document) => within.querySelector(selector);
export const show = (element, isShown = true) => {
  if (element !== null && element !== undefined) element.hidden = !isShown;
};

/** Tells what was done, for screen readers, too. */
export function notify(text) {
  const notice = find('[data-notice]');
  notice.textContent = text;
  show(notice, text !== '');
}

/** Sends a form with `send(values, form)`; what it throws is shown in the form. */
export function onSubmit(form, send) {
  if (form === null) return;
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (!form.reportValidity()) return;
    await attempt(form, () => send(valuesOf(form), form));
  });
}

/** Does something once at a time, and shows in the part why it failed. */
export async function attempt(part, task) {
  const buttons = [...part.querySelectorAll('button')].filter(({ disabled }) => !disabled);
  const fault = find('[data-fault]', part);
  notify('');
  show(fault, false);
  for (const button of buttons) button.disabled = true;
  try {
    await task();
  } catch (error) {
    // The person has changed their mind.
    if (error?.code === 'cancelled') return;
    if (fault === null) return fail(error);
    fault.textContent = sentenceOf(error);
    show(fault);
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

/** A fault that belongs to no form. */
export function fail(error) {
  const main = find('main');
  const fault = find(':scope > .fault', main) ?? main.insertBefore(document.createElement('p'), find('[data-notice]'));
  fault.className = 'fault';
  fault.setAttribute('role', 'alert');
  fault.textContent = sentenceOf(error);
}

export function clearFault() {
  find('main > .fault')?.remove();
}

const sentenceOf = (error) => (typeof error?.code === 'string' ? error.message : document.body.dataset.failed);

export function valuesOf(form) {
  return Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ''));
}

/** Shows the field for a one-time code; false when it was shown before. */
export function askForCode(form) {
  const part = find('[data-code]', form);
  if (!part.hidden) return false;
  show(part);
  find('input', part).focus();
  return true;
}

/** Draws a list again: a clone of the template for each row, filled and wired by `draw(element, row)`. */
export function drawRows(list, name, rows, draw) {
  const template = find(`template#${name}`);
  list.replaceChildren(
    ...rows.map((row) => {
      const element = template.content.firstElementChild.cloneNode(true);
      draw(element, row);
      return element;
    }),
  );
  show(find('[data-empty]', list.parentElement), rows.length === 0);
}

/** Sets the text of fields; an empty one is not shown. */
export function fill(element, values) {
  for (const [name, value] of Object.entries(values)) {
    const field = find(`[data-field="${name}"]`, element);
    if (value === true || value === false) show(field, value);
    else {
      field.textContent = value ?? '';
      show(field, (value ?? '') !== '');
    }
  }
}

export function onClick(element, name, task) {
  find(`[data-do="${name}"]`, element).addEventListener('click', () => attempt(element, task));
}

const times = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'short' });
export const timeText = (value) => times.format(new Date(value));

/** Whether the person goes on with what cannot be undone. */
export function isSure() {
  return choice(find('dialog#sure'));
}

/** The answer to a dialog of two buttons. */
function choice(dialog) {
  return new Promise((resolve) => {
    dialog.returnValue = 'cancel';
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'ok'), { once: true });
    dialog.showModal();
  });
}

/** Does something that may need a proof of presence: asks for it in place, and tries again. */
export async function withPresence(login, task) {
  try {
    return await task();
  } catch (error) {
    if (error.code !== 'recent_login_required' || login.prove === undefined) throw error;
  }
  const dialog = find('dialog#presence');
  const form = find('form', dialog);
  const fault = find('[data-fault]', dialog);
  for (;;) {
    if (!(await choice(dialog))) throw Object.assign(new Error(''), { code: 'cancelled' });
    try {
      await login.prove(valuesOf(form));
      break;
    } catch (error) {
      if (error.code === 'one_time_code_required' && askForCode(form)) continue;
      fault.textContent = sentenceOf(error);
      show(fault);
    }
  }
  form.reset();
  show(fault, false);
  return task();
}

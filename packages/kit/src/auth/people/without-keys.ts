/** An API key of whatever tag, wherever in a text: `<tag>_<prefix>_<secret and checksum>`. */
const KEY = /([a-z]{2,8}_[0-9A-Za-z]{12}_)[0-9A-Za-z]{49}/g;

/** The same text with only the public part left of every API key: for what clients put where no key belongs, and we would write down. */
export function withoutKeys(text: string): string {
  return text.includes('_') ? text.replace(KEY, '$1…') : text;
}

import { ADMIN_STYLE_NONCE, type PortalFacts } from '../wire/wire.ts';

/** The built document as this application's. Colours are in it, and not in a file, so that nothing is drawn in others first. */
export function dressed(page: string, title: string, portal: Omit<PortalFacts, 'by_link'> | undefined): string {
  const { locale = null, accent = null, accent_dark: accentDark = null } = portal ?? {};
  const safe = title.replaceAll(/[&<>]/g, (character) => `&#${character.codePointAt(0)};`);
  const titled = page.replace(/<title>[^<]*<\/title>/, () => `<title>${safe}</title>`);
  const spoken = locale === null ? titled : titled.replace('<html lang="en">', `<html lang="en" data-locale="${locale}">`);
  const rules = [
    // White text is on it in both schemes.
    ...(accent === null ? [] : [ruleFor('light', filled(accent)), ruleFor('dark', filled(accent)), ruleFor('light', text(accent))]),
    ...(accentDark === null ? [] : [ruleFor('dark', text(accentDark))]),
  ];
  return rules.length === 0 ? spoken : spoken.replace('</head>', `<style nonce="${ADMIN_STYLE_NONCE}">${rules.join('')}</style></head>`);
}

const filled = (color: string) => ({
  '--mantine-primary-color-filled': color,
  '--mantine-primary-color-filled-hover': `color-mix(in srgb, ${color} 88%, #000)`,
});
const text = (color: string) => ({
  '--mantine-color-anchor': color,
  '--tone-info': color,
  '--tone-info-soft': `color-mix(in srgb, ${color} 10%, var(--site-surface))`,
});

/** Stronger than the rules of the built page, whichever come last. */
function ruleFor(scheme: 'light' | 'dark', variables: Readonly<Record<string, string>>): string {
  const declared = Object.entries(variables).map(([name, value]) => `${name}:${value};`);
  return `html:root[data-mantine-color-scheme='${scheme}']{${declared.join('')}}`;
}

// What this page changed itself, or asked for again, it shows: only the changes of others are offered.
let made = 0;

export function ownChanges(): number {
  return made;
}

export function markOwnChange(): void {
  made += 1;
}

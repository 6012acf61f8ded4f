/** The application's login page, told where to send the browser afterwards: a path, or the whole address where the page is on another host. */
export function loginAddress(url: string, here: Location = window.location): string {
  const address = new URL(url, here.href);
  const isHere = address.origin === here.origin;
  address.searchParams.set('return_to', isHere ? `${here.pathname}${here.hash}` : here.href);
  return address.href;
}

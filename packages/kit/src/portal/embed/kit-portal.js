// <kit-portal src="https://api.example.com/portal" page="endpoints" theme="dark">: the developers' portal in a frame. Its property `link` is a function that
// asks your back end for the token of a new link: it is called for the first session, and again when one has ended.
(() => {
  class KitPortal extends HTMLElement {
    static observedAttributes = ['src', 'page', 'theme'];
    #frame = null;
    #link = null;
    #isWaiting = false;

    get link() {
      return this.#link;
    }

    set link(link) {
      this.#link = link;
      if (this.#isWaiting) void this.#send();
    }

    connectedCallback() {
      // Set before this script ran.
      if (Object.hasOwn(this, 'link')) {
        const { link } = this;
        delete this.link;
        this.link = link;
      }
      window.addEventListener('message', this.#hear);
      this.#show();
    }

    disconnectedCallback() {
      window.removeEventListener('message', this.#hear);
      this.#frame?.remove();
      this.#frame = null;
    }

    attributeChangedCallback() {
      if (this.isConnected && this.#frame !== null) this.#show();
    }

    get #address() {
      const url = new URL((this.getAttribute('src') ?? '').replace(/\/*$/, '/embed'), document.baseURI);
      const theme = this.getAttribute('theme');
      if (theme !== null) url.searchParams.set('theme', theme);
      url.hash = `/${this.getAttribute('page') ?? ''}`;
      return url;
    }

    #show() {
      this.#frame?.remove();
      const frame = document.createElement('iframe');
      frame.src = this.#address.href;
      frame.title = this.getAttribute('aria-label') ?? 'For developers';
      frame.allow = 'clipboard-write';
      frame.referrerPolicy = 'no-referrer';
      Object.assign(frame.style, { display: 'block', width: '100%', height: '32rem', border: '0', colorScheme: 'normal' });
      this.#frame = frame;
      this.append(frame);
    }

    /** Only what this frame says, while it shows the portal. */
    #hear = ({ source, origin, data }) => {
      if (this.#frame === null || source !== this.#frame.contentWindow || origin !== this.#address.origin) return;
      if (data?.type === 'kit-portal:ready') void this.#send();
      if (data?.type === 'kit-portal:height' && data.height > 0 && data.height < 1e5)
        this.#frame.style.height = `${Math.ceil(data.height)}px`;
    };

    async #send() {
      this.#isWaiting = this.#link === null;
      if (this.#link === null) return;
      const frame = this.#frame;
      try {
        const token = await this.#link();
        if (frame === this.#frame) frame?.contentWindow?.postMessage({ type: 'kit-portal:link', token }, this.#address.origin);
      } catch (error) {
        this.dispatchEvent(new CustomEvent('kit-portal-error', { detail: error }));
      }
    }
  }
  if (!customElements.get('kit-portal')) customElements.define('kit-portal', KitPortal);
})();

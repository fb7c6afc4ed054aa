// @ts-check
// The memory of a Python that has just started, kept in Cache Storage so that the next visit need not start it again.
// It is taken before the first question: nothing but the program is in it. Where storage is denied nothing is kept and
// nothing is said. What is kept belongs to one page and one build of it; whatever else is there is thrown away.
//
// A memory that takes the browser down would do so at every visit. So a mark stands while Python starts; who finds one
// that no living worker answers for (a lock tells) starts without any memory, and what was kept is gone.

const PATIENCE = 5000; // ms that storage may take, while files load, before the start goes on without it
const LENGTH = "x-length"; // of what is kept, unpacked

class Memory {
  /** @param {string} page the folder of the page @param {string} build names all of Python's files at once */
  constructor(page, build) {
    this.shelf = `pipesched ${page}`;
    this.address = new URL(`memory-${build}`, page).href;
    this.mark = new URL("memory-in-use", page).href;
    this.usable = false; // whether one may be kept when this start has gone well
    this.release = () => {};
    /** @type {Cache | undefined} */
    this.cache = undefined;
  }

  /** What was kept for this build, if anything may be. @param {boolean} fresh do without, and throw it away
   * @returns {Promise<Uint8Array | undefined>} */
  async recall(fresh) {
    const late = new Promise((resolve) => setTimeout(resolve, PATIENCE));
    try {
      return await Promise.race([this.look(fresh), late]);
    } catch {
      return undefined;
    }
  }

  /** @param {boolean} fresh */
  async look(fresh) {
    const cache = await caches.open(this.shelf);
    const crashed = await this.enter(cache);
    for (const { url } of await cache.keys()) {
      if (crashed || fresh || (url !== this.address && url !== this.mark)) await cache.delete(url);
    }
    if (crashed) return undefined;
    this.cache = cache;
    this.usable = true;
    const kept = await cache.match(this.address);
    if (!kept?.body) return undefined;
    try {
      const memory = new Uint8Array(await new Response(kept.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
      if (String(memory.length) === kept.headers.get(LENGTH)) return memory;
    } catch {
      // cut short or changed: not even the checksum of gzip is right
    }
    await cache.delete(this.address);
    return undefined;
  }

  /** Take the lock; whether a start before left its mark, and nobody answers for it. @param {Cache} cache */
  async enter(cache) {
    await new Promise((entered, refused) => {
      const held = () => new Promise((release) => entered((this.release = () => release(undefined))));
      navigator.locks.request(this.shelf, { mode: "shared" }, held).catch(refused);
    });
    const starting = (await navigator.locks.query()).held?.filter(({ name }) => name === this.shelf) ?? [];
    return starting.length < 2 && Boolean(await cache.match(this.mark));
  }

  /** Python is about to start. */
  async begin() {
    try {
      await this.cache?.put(this.mark, new Response());
    } catch {
      this.usable = false;
    }
  }

  /** Python runs. @param {Uint8Array} [memory] what to keep */
  async settle(memory) {
    try {
      await this.cache?.delete(this.mark);
      const packed = memory && new Blob([/** @type {any} */ (memory)]).stream().pipeThrough(new CompressionStream("gzip"));
      if (packed) await this.cache?.put(this.address, new Response(await new Response(packed).blob(), { headers: { [LENGTH]: String(memory.length) } }));
    } catch {
      // The disk is full, or storage was taken away: the next start is as this one was.
    }
    this.release();
  }

  /** What was kept does not work. */
  async drop() {
    await this.cache?.delete(this.address).catch(() => {});
  }
}
